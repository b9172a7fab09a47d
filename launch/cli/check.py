"""`longrl check`: find what is wrong with a recipe before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from launch.cli.options import Overrides, RecipePath
from slime_ext.recipe.load import load_recipe


def check(
    recipe: RecipePath,
    overrides: Overrides = (),
    runs: Path = Path("runs"),
    offline: bool = False,
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """Look at everything a run needs: paths, model, every row, reward, judge, disk, host, plan.

    Exit code 0 where all is well, 1 with warnings, 2 with failures.

    Args:
        recipe: The recipe.
        overrides: Changes of single keys.
        runs: Folder that holds the run folders.
        offline: Ask nothing over the network; skip what this machine does not have.
        as_json: Print the findings as JSON.
    """
    asked = load_recipe(recipe, overrides).recipe
    from launch.preflight.areas import preflight
    from launch.preflight.finding import exit_code
    from launch.preflight.table import as_json as to_json
    from launch.preflight.table import show_table

    findings = preflight(asked, runs, offline=offline)
    if as_json:
        print(to_json(str(recipe), findings))
    else:
        show_table(f"{recipe}: run {asked.name}, {asked.backend} backend", findings)
    return exit_code(findings)
