"""`longrl submit`: put a run on a SLURM cluster."""

from __future__ import annotations

from pathlib import Path

from launch.cli.options import Overrides, RecipePath
from launch.slurm.render import render_job
from launch.slurm.submit import prepare_job, submit
from slime_ext.recipe.load import load_recipe


def submit_run(
    recipe: RecipePath,
    overrides: Overrides = (),
    runs: Path = Path("runs"),
    fresh: bool = False,
    dry_run: bool = False,
) -> int:
    """Render the job script of a recipe and hand it to sbatch.

    A run that was interrupted goes on from its newest complete checkpoint.

    Args:
        recipe: The recipe.
        overrides: Changes of single keys.
        runs: Folder that holds the run folders; every node must see it.
        fresh: Set an existing run folder of this name aside and start over.
        dry_run: Print the script and submit nothing.
    """
    asked = load_recipe(recipe, overrides).recipe
    if dry_run:
        print(render_job(asked, runs.resolve() / asked.name), end="")
        return 0
    folder = prepare_job(asked, runs, fresh)
    job = submit(folder)
    print(f"job {job} is queued; `longrl logs {asked.name} -f` follows it")
    return 0
