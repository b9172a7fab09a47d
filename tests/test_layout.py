"""The layout and import rules: imports run one way, rewards stay light, files stay short."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("rewards", "slime_ext", "launch", "tools")
IMPORT_NAME = {"tools": "longrl_tools"}
ALLOWED = {
    "rewards": {"rewards"},
    "slime_ext": {"rewards", "slime_ext"},
    "launch": {"rewards", "slime_ext", "launch"},
    "tools": {"rewards", "slime_ext"},
    "launch/cli": {"rewards", "slime_ext", "launch", "longrl_tools"},
}
FORBIDDEN_IN_REWARDS = {"torch", "slime", "transformers", "megatron"}
MAX_LINES = 400
MAX_FUNCTION_LINES = 60


def source_files() -> list[Path]:
    return [p for folder in OURS for p in sorted((ROOT / folder).rglob("*.py"))]


def area(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return "launch/cli" if parts[:2] == ("launch", "cli") else parts[0]


def imported(path: Path) -> set[str]:
    """Dotted names of everything a file imports, functions' own imports included."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", source_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    ours = {IMPORT_NAME.get(name, name) for name in OURS}
    used = {name.partition(".")[0] for name in imported(path)} & ours
    assert used <= ALLOWED[area(path)]
    if area(path) != "launch/cli":
        assert not any(name.startswith("launch.cli") for name in imported(path))


@pytest.mark.parametrize("path", source_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_only_the_host_package_imports_slime(path: Path) -> None:
    uses = any(name == "slime" or name.startswith("slime.") for name in imported(path))
    assert not uses or path.is_relative_to(ROOT / "slime_ext" / "host")


def test_rewards_load_without_torch_or_slime() -> None:
    code = (
        "import sys, rewards.registry, rewards.recorder, rewards.grouping\n"
        f"print(sorted({FORBIDDEN_IN_REWARDS!r} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize("path", source_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert len(text.splitlines()) <= MAX_LINES
    assert ast.get_docstring(tree), "a module opens with what it is"
    long = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_each_folder_has_a_short_readme() -> None:
    folders = {p.parent for p in source_files() if "stubs" not in p.parts}
    lengths = {
        str(folder.relative_to(ROOT)): len((folder / "README.md").read_text().splitlines())
        if (folder / "README.md").is_file()
        else None
        for folder in folders
    }
    assert {name: n for name, n in lengths.items() if n is None or n > 40} == {}


def test_the_main_readme_is_under_200_lines() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 200
