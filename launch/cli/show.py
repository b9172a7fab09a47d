"""`longrl show`: every value of a recipe and who set it."""

from __future__ import annotations

import os
from typing import Any

from rich.table import Table
from rich.text import Text

from launch.cli.options import Overrides, RecipePath
from launch.terminal import unwrapped_console
from slime_ext.recipe.load import load_recipe


def show(recipe: RecipePath, overrides: Overrides = ()) -> int:
    """Print each value of a recipe with its origin.

    Args:
        recipe: The recipe.
        overrides: Changes of single keys.
    """
    loaded = load_recipe(recipe, overrides)
    table = Table(title=Text(str(recipe)))
    for name in ("key", "value", "set by"):
        table.add_column(name, overflow="fold")
    for key, value in _leaves(loaded.recipe.model_dump(mode="json")):
        origin = _shorter(loaded.origins.get(key, "default"))
        # Text, not str: a list has brackets, which rich would read as markup.
        table.add_row(key, Text(repr(value)), Text(origin))
    unwrapped_console().print(table)
    return 0


def _shorter(origin: str) -> str:
    """`FILE:LINE` from here, where that is the shorter name; what names no file as it is."""
    if not origin.startswith(os.sep):
        return origin
    return min(origin, os.path.relpath(origin), key=len)


def _leaves(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for name, value in table.items():
        if isinstance(value, dict) and value:
            leaves += _leaves(value, f"{prefix}{name}.")
        else:
            leaves.append((prefix + name, value))
    return leaves
