"""`longrl show`: every value of a recipe and who set it."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from launch.cli.options import Overrides, RecipePath
from slime_ext.recipe.load import load_recipe


def show(recipe: RecipePath, overrides: Overrides = ()) -> int:
    """Print each value of a recipe with its origin.

    Args:
        recipe: The recipe.
        overrides: Changes of single keys.
    """
    loaded = load_recipe(recipe, overrides)
    table = Table("key", "value", "set by", title=str(recipe))
    for key, value in _leaves(loaded.recipe.model_dump(mode="json")):
        table.add_row(key, repr(value), loaded.origins.get(key, "default"))
    Console().print(table)
    return 0


def _leaves(table: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for name, value in table.items():
        if isinstance(value, dict) and value:
            leaves += _leaves(value, f"{prefix}{name}.")
        else:
            leaves.append((prefix + name, value))
    return leaves
