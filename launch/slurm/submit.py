"""Handing a rendered script to sbatch.

One design choice: everything that can be wrong on the submitting side (a missing key, a secrets
file others can read, no sbatch) is found before the queue sees the job.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from launch.arguments import slime_arguments
from launch.slurm.paths import made_here, on_nodes
from launch.slurm.queue import JOBS, SCRIPT, has_slurm, queued
from launch.slurm.render import render_job
from launch.slurm.secrets import require_secrets
from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder, check_run, write_recipe
from slime_ext.recipe.load import dump_recipe
from slime_ext.recipe.schema import Recipe


class SubmitError(ExplainedError):
    """The job was not submitted."""


def prepare_job(recipe: Recipe, root: Path, fresh: bool = False, smoke: bool = False) -> RunFolder:
    """Make the run folder with the recipe and the script; nothing is submitted.

    Raises RunFolderError where the run has ended or was started with another recipe, SecretError
    for a missing key, SubmitError where a job of the run still waits or runs, and what
    `launch.arguments.slime_arguments` raises.
    """
    require_secrets(recipe)
    refuse_second(root.resolve() / recipe.name)
    asked = recipe
    if recipe.backend == "slime":
        recipe = on_nodes(asked, root.resolve() / asked.name)
        # What the host would refuse is found here, not after hours in the queue.
        slime_arguments(recipe, root / recipe.name)
    script = render_job(recipe, root.resolve() / recipe.name, smoke)
    folder = check_run(root.resolve(), recipe, fresh)
    (folder.path / "logs").mkdir(parents=True, exist_ok=True)
    _write(folder.path / "submitted.toml", dump_recipe(recipe))
    if recipe.backend == "slime":
        write_recipe(folder, recipe)
        if made_here(asked):
            from slime_ext.embedded.builtin import write_data  # torch: seconds to import

            write_data(asked, recipe)
    _write(folder.path / SCRIPT, script)
    return folder


def refuse_second(run: Path) -> None:
    """Raise SubmitError where a job of this run still waits or runs: two would share one folder."""
    waiting = [job for job in queued(run) if job.active] if has_slurm() else []
    if waiting:
        raise SubmitError(
            f"job {waiting[-1].id} of {run.name} is {waiting[-1].state}; "
            f"`longrl cancel {run.name}` ends it, --set name=OTHER makes another run"
        )


def submit(folder: RunFolder, chain: int = 1) -> list[str]:
    """Submit the script of `folder` `chain` times, each after the end of the one before; the ids,
    also appended to `jobs.txt`.

    Raises SubmitError with sbatch's own words; jobs submitted before the refusal stay queued and
    are in `jobs.txt`.
    """
    if shutil.which("sbatch") is None:
        raise SubmitError(
            "there is no sbatch on this machine; run this on a login node of the cluster, or "
            "`longrl train RECIPE --backend slime` inside an allocation"
        )
    ids: list[str] = []
    for _ in range(chain):
        after = [f"--dependency=afterany:{ids[-1]}"] if ids else []
        # A later job of a chain may find everything done, which is no error there.
        part = ["chained"] if ids else []
        ids.append(_sbatch([*after, str(folder.path / SCRIPT), *part]))
        with (folder.path / JOBS).open("a") as jobs:
            jobs.write(ids[-1] + "\n")
    return ids


def _sbatch(words: list[str]) -> str:
    done = subprocess.run(["sbatch", "--parsable", *words], capture_output=True, text=True)
    found = re.match(r"(\d+)", done.stdout)
    if done.returncode or found is None:
        raise SubmitError(f"sbatch refused the job: {(done.stderr or done.stdout).strip()}")
    return found[1]


def _write(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    partial.replace(path)
