"""`longrl submit`: put a run, or one for each combination of values, on a SLURM cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from launch.cli.options import Overrides, RecipePath
from launch.slurm.render import render_job
from launch.slurm.smoke import smoke_recipe, write_smoke_data
from launch.slurm.submit import prepare_job, submit
from launch.slurm.sweep import variants
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe


def submit_run(
    recipe: RecipePath,
    overrides: Overrides = (),
    seed: Annotated[str | None, tyro.conf.arg(metavar="N,N,...")] = None,
    chain: Annotated[int, tyro.conf.arg(metavar="N")] = 1,
    smoke: bool = False,
    smoke_model: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None,
    runs: Path = Path("runs"),
    fresh: bool = False,
    dry_run: bool = False,
) -> int:
    """Render the job script of a recipe and hand it to sbatch.

    A run that was interrupted goes on from its newest complete checkpoint. `--set KEY=A,B` makes a
    run for each value, several such options one for each combination; a comma inside brackets,
    braces or quotes separates nothing.

    Args:
        recipe: The recipe.
        overrides: Changes of single keys.
        seed: Seeds, one run each.
        chain: Jobs queued one after the other, for a run longer than the time limit.
        smoke: Run two steps of it on one node and a small model instead, with save, resume, export.
        smoke_model: Model of the smoke run; without it models/Qwen3-0.6B.
        runs: Folder that holds the run folders; every node must see it.
        fresh: Set an existing run folder of this name aside and start over.
        dry_run: Print the script and submit nothing.
    """
    asked = [_variant(recipe, one.overrides, one.suffix) for one in variants(overrides, seed)]
    if smoke:
        asked = [smoke_recipe(one, runs, smoke_model) for one in asked]
    if chain > 1:
        # The chain goes on where a job was stopped; the same job in the queue again would run too.
        asked = [_with_cluster(one, requeue=False) for one in asked]
    if dry_run:
        for one in asked:
            print(render_job(one, runs.resolve() / one.name, smoke), end="")
        return 0
    # Everything is looked at before the first job is in the queue.
    folders = [prepare_job(one, runs, fresh, smoke) for one in asked]
    if smoke:
        for one in asked:
            write_smoke_data(one)
    jobs = [(folder, submit(folder, max(chain, 1))) for folder in folders]
    _show(jobs)
    return 0


def _variant(path: Path, overrides: tuple[str, ...], suffix: str) -> Recipe:
    loaded = load_recipe(path, overrides).recipe
    if not suffix:
        return loaded
    return load_recipe(path, (*overrides, f'name="{loaded.name}{suffix}"')).recipe


def _with_cluster(recipe: Recipe, **changes: object) -> Recipe:
    return recipe.model_copy(update={"cluster": recipe.cluster.model_copy(update=changes)})


def _show(jobs: list[tuple[RunFolder, list[str]]]) -> None:
    table = Table("run", "jobs", "folder", box=None)
    for folder, ids in jobs:
        table.add_row(folder.path.name, ", ".join(ids), str(folder.path))
    Console(soft_wrap=True, highlight=False).print(table)
    name = jobs[0][0].path.name
    print(f"`longrl logs {name} -f` follows a run, `longrl status {name}` shows it")
