"""The image definitions: a pinned base, this package, nothing that replaces the host's."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from launch.container.check import faults

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "launch" / "container"
FILES = ("Dockerfile", "longrl.def")
OURS = ("rewards", "slime_ext", "launch", "tools", "configs")
HOSTS_OWN = {"torch", "numpy", "ray", "sglang", "transformers", "megatron-core", "flash-attn"}


def read(name: str) -> str:
    text = (FOLDER / name).read_text()
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))


@pytest.mark.parametrize("name", FILES)
def test_the_base_is_one_named_image(name: str) -> None:
    bases = re.findall(r"(?i)\bbase=(\S+)", read(name))
    assert bases == ["slimerl/slime:nightly-dev-20260804a"]
    assert len(re.findall(r"(?im)^from:?\s", read(name))) == 1


@pytest.mark.parametrize("name", FILES)
def test_everything_of_ours_goes_in_and_exists(name: str) -> None:
    text = read(name)
    for part in (*OURS, "pyproject.toml", "setup.py", "constraints.txt", "README.md", "LICENSE"):
        assert re.search(rf"(^|\s){re.escape(part)}(\s|$)", text, re.MULTILINE), part
        assert (ROOT / part).exists()


@pytest.mark.parametrize("name", FILES)
def test_no_install_may_pull_dependencies_or_an_extra(name: str) -> None:
    commands = read(name).replace("\\\n", " ")
    installs = re.findall(r"pip install[^\n&]*", commands)
    assert len(installs) == 2
    assert all("--no-deps" in one for one in installs)
    assert not re.search(r"longrl\[|embedded|torch|megatron", commands)
    assert "launch.container.check" in commands


def test_the_added_packages_are_light_and_needed() -> None:
    named = {line for line in read("requirements.txt").split() if line}
    assert not named & HOSTS_OWN
    core = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    direct = {re.match(r"[\w-]+", one)[0] for one in core}  # type: ignore[index]
    behind = {
        re.match(r"[\w-]+", text)[0].lower()  # type: ignore[index]
        for name in named & direct
        for text in metadata.requires(name) or []
    }
    assert named - direct - behind == {"py-spy"}


def test_the_check_passes_where_everything_is_in_its_place() -> None:
    assert faults({"rewards": str(ROOT)}) == []


def test_the_check_names_what_was_replaced_and_what_is_missing() -> None:
    found = faults({"rewards": "/root/elsewhere", "no_such.package": "/root"})
    assert found[0].startswith(f"rewards comes from {ROOT / 'rewards'}, not from /root/elsewhere")
    assert found[1] == "no_such.package cannot be imported"
