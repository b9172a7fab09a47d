"""The recipes that ship, found and loaded as a user's would be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.places import configs_folder
from slime_ext.recipe.schema import Recipe

PARTS = ("base.toml",)
"""Files of this name are halves of recipes, and those in cluster/ are sites."""


def recipe_files() -> list[Path]:
    """Every complete recipe, sorted."""
    files = sorted(configs_folder().rglob("*.toml"))
    return [f for f in files if f.name not in PARTS and f.parent.name != "cluster"]


def load(name: str, *overrides: str) -> Recipe:
    """The recipe `FOLDER/STEM` of the folder configs."""
    return load_recipe(configs_folder() / f"{name}.toml", overrides).recipe


def value(recipe: Recipe, key: str) -> Any:
    """The value at a dotted key; JSON types, so that tuples compare with lists."""
    found: Any = recipe.model_dump(mode="json")
    for part in key.split("."):
        found = found[part]
    return found


def keys_of(table: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted keys of a parsed TOML table."""
    for name, item in table.items():
        if isinstance(item, dict):
            yield from keys_of(item, f"{prefix}{name}.")
        else:
            yield prefix + name
