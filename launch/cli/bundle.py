"""`longrl bundle`: one file for a bug report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from launch.cli.options import RunName, RunsFolder
from launch.slurm.bundle import bundle
from launch.slurm.find_run import find_run
from launch.slurm.secrets import secret_values
from slime_ext.recipe.load import load_recipe


def bundle_run(
    run: RunName,
    out: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="OUT.tar.gz")] = None,
    runs: RunsFolder = Path("runs"),
) -> int:
    """Pack a run for a bug report: recipe, versions, command, job script, logs, metrics, events.

    Prompts, responses, data and weights stay out; keys and samples are taken out of the logs.

    Args:
        run: Name or folder of a run.
        out: The file; without it RUN.tar.gz in this folder.
        runs: Folder that holds the run folders.
    """
    folder = find_run(run, runs)
    recipes = [
        one for name in ("recipe.toml", "submitted.toml") if (one := folder / name).is_file()
    ]
    known = secret_values(load_recipe(recipes[0]).recipe) if recipes else []
    made = bundle(folder, out or Path(f"{folder.name}.tar.gz"), known)
    print(f"{made.path}: {made.files} files; keys or texts taken out of {made.changed_lines} lines")
    print("look through it before you send it: tar tzf, or tar xzf into an empty folder")
    return 0
