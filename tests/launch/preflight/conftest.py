"""Recipes, model folders and contexts for the preflight's tests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launch.preflight.context import Context
from launch.preflight.finding import Finding
from slime_ext.recipe.schema import Recipe

LAB_MODEL = Path(__file__).parents[3] / "slime_ext" / "embedded" / "lab" / "start_hs"

MakeContext = Callable[..., Context]


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`base` with `changes` on top, tables merged key by key."""
    result = dict(base)
    for key, value in changes.items():
        old = result.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        result[key] = merged(old, value) if both else value
    return result


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A copy of the lab's model folder, without its weights."""
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(LAB_MODEL / name, folder / name)
    return folder


@pytest.fixture
def edit(model: Path) -> Callable[..., None]:
    """edit(FILE, key=value...) changes a JSON file of the model folder, or makes it."""

    def change(name: str, **values: Any) -> None:
        path = model / name
        old = json.loads(path.read_text()) if path.is_file() else {}
        path.write_text(json.dumps(old | values))

    return change


@pytest.fixture
def make(tmp_path: Path, model: Path) -> MakeContext:
    """make(offline=..., interpreter=..., SECTION={...}) -> a context with its recipe."""

    def context(
        *, offline: bool = False, interpreter: str | None = None, **changes: Any
    ) -> Context:
        data = tmp_path / "rows.jsonl"
        data.touch()
        base: dict[str, Any] = {
            "name": "run",
            "backend": "slime",
            "model": {"path": str(model), "family": "lab"},
            "data": {"train": str(data), "max_prompt_tokens": 64},
            "rollout": {
                "steps": 2,
                "prompts": 4,
                "group_size": 8,
                "max_response_tokens": 32,
                "context_tokens": 256,
            },
            "reward": {"kind": "outcome"},
            "optimiser": {"lr": 1e-3},
            "slime": {
                "path": str(tmp_path / "slime"),
                "megatron_path": str(tmp_path / "Megatron-LM"),
            },
        }
        recipe = Recipe.model_validate(merged(base, changes))
        return Context(recipe, recipe, tmp_path / "runs", offline, interpreter)

    return context


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Folders that look like checkouts of slime and Megatron-LM; returns the one above them."""
    (tmp_path / "slime").mkdir()
    (tmp_path / "slime" / "train.py").touch()
    (tmp_path / "Megatron-LM" / "megatron" / "training").mkdir(parents=True)
    return tmp_path


def named(findings: list[Finding], name: str) -> Finding:
    """The one finding of this name."""
    found = [finding for finding in findings if finding.name == name]
    assert len(found) == 1, findings
    return found[0]
