"""`longrl train`: run a recipe, or go on with a run that was interrupted."""

from __future__ import annotations

from pathlib import Path

from launch.cli.options import Overrides, RecipePath
from slime_ext.recipe.load import load_recipe


def train(
    recipe: RecipePath,
    overrides: Overrides = (),
    runs: Path = Path("runs"),
    fresh: bool = False,
) -> int:
    """Train a recipe on this machine (embedded backend: no GPU, no slime).

    A run that was interrupted goes on from its newest checkpoint.

    Args:
        recipe: The recipe.
        overrides: Changes of single keys.
        runs: Folder that holds the run folders.
        fresh: Set an existing run folder of this name aside and start over.
    """
    loaded = load_recipe(recipe, overrides)
    from slime_ext.embedded.run import train as train_embedded

    return train_embedded(loaded.recipe, runs, fresh)
