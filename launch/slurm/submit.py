"""Handing a rendered script to sbatch.

One design choice: everything that can be wrong on the submitting side (a missing key, a secrets
file others can read, no sbatch) is found before the queue sees the job.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from launch.arguments import slime_arguments
from launch.slurm.render import render_job
from launch.slurm.secrets import require_secrets
from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder, check_run, write_recipe
from slime_ext.recipe.load import dump_recipe
from slime_ext.recipe.schema import Recipe

SCRIPT = "job.sh"


class SubmitError(ExplainedError):
    """The job was not submitted."""


def prepare_job(recipe: Recipe, root: Path, fresh: bool = False) -> RunFolder:
    """Make the run folder with the recipe and the script; nothing is submitted.

    Raises RunFolderError where the run has ended or was started with another recipe, SubmitError
    for a missing key, and what `launch.arguments.slime_arguments` raises.
    """
    require_secrets(recipe)
    if recipe.backend == "slime":
        # What the host would refuse is found here, not after hours in the queue.
        slime_arguments(recipe, root / recipe.name)
    folder = check_run(root.resolve(), recipe, fresh)
    script = render_job(recipe, folder.path)
    (folder.path / "logs").mkdir(parents=True, exist_ok=True)
    _write(folder.path / "submitted.toml", dump_recipe(recipe))
    if recipe.backend == "slime":
        write_recipe(folder, recipe)
    _write(folder.path / SCRIPT, script)
    return folder


def submit(folder: RunFolder, options: Sequence[str] = ()) -> str:
    """Submit the script of `folder`; the job's id, also appended to `jobs.txt`.

    Raises SubmitError with sbatch's own words.
    """
    if shutil.which("sbatch") is None:
        raise SubmitError(
            "there is no sbatch on this machine; run this on a login node of the cluster, or "
            "`longrl train RECIPE --backend slime` inside an allocation"
        )
    command = ["sbatch", "--parsable", *options, str(folder.path / SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True)
    found = re.match(r"(\d+)", done.stdout)
    if done.returncode or found is None:
        raise SubmitError(f"sbatch refused the job: {(done.stderr or done.stdout).strip()}")
    with (folder.path / "jobs.txt").open("a") as jobs:
        jobs.write(found[1] + "\n")
    return found[1]


def _write(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text)
    partial.replace(path)
