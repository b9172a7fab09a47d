"""`longrl train`: run a recipe, or go on with a run that was interrupted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from launch.cli.options import Overrides, RecipePath
from slime_ext.recipe.errors import RecipeError
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe


def train(
    recipe: RecipePath,
    overrides: Overrides = (),
    runs: Path = Path("runs"),
    fresh: bool = False,
    backend: Literal["embedded", "slime"] | None = None,
    dry_run: bool = False,
) -> int:
    """Train a recipe: on this machine (embedded: no GPU, no slime), or with slime.

    A run that was interrupted goes on from its newest checkpoint. With slime this starts its
    train.py here, so it belongs inside an allocation; `longrl submit` asks for one.

    Args:
        recipe: The recipe.
        overrides: Changes of single keys.
        runs: Folder that holds the run folders.
        fresh: Set an existing run folder of this name aside and start over.
        backend: In place of the recipe's own.
        dry_run: Print slime's command instead of running it; nothing is written.
    """
    chosen = () if backend is None else (f"backend={backend}",)
    loaded = load_recipe(recipe, (*overrides, *chosen)).recipe
    if dry_run:
        return _show_command(loaded, runs)
    if loaded.backend == "slime":
        from launch.foreground import train_in_foreground

        return train_in_foreground(loaded, runs, fresh)
    from slime_ext.embedded.run import train as train_embedded

    return train_embedded(loaded, runs, fresh)


def _show_command(recipe: Recipe, runs: Path) -> int:
    if recipe.backend != "slime":
        raise RecipeError(
            "--dry-run shows the command of slime; add --backend slime, or check an embedded run "
            "with `longrl check`"
        )
    from launch.argument_groups.sampling import CONFIG
    from launch.foreground import shown

    run = runs / recipe.name
    print(shown(recipe, run))
    print(
        f"(nothing was written: the command reads {run / 'recipe.toml'} and {run / CONFIG}, which "
        "`longrl train` without --dry-run and `longrl submit` make)",
        file=sys.stderr,
    )
    return 0
