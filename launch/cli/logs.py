"""`longrl logs`: what the jobs of a run printed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import tyro

from launch.cli.options import RunName, RunsFolder
from launch.slurm.find_run import find_run
from launch.slurm.logs import attempt_text, newest_log
from launch.slurm.logs import follow as follow_jobs
from launch.slurm.queue import has_slurm, job_ids, queued


def logs(
    run: RunName,
    follow: Annotated[bool, tyro.conf.arg(aliases=["-f"]), tyro.conf.FlagCreatePairsOff] = False,
    attempt: int | None = None,
    runs: RunsFolder = Path("runs"),
) -> int:
    """Print the output of a run's newest job.

    Args:
        run: Name or folder of a run.
        follow: Go on with what is printed from now on, over restarts, until the last job has ended.
        attempt: Print what this attempt printed instead.
        runs: Folder that holds the run folders.
    """
    folder = find_run(run, runs)
    if attempt is not None:
        print(attempt_text(folder, attempt), end="")
        return 0
    if not follow:
        print(newest_log(folder).read_text(errors="replace"), end="")
        return 0
    if not job_ids(folder):
        newest_log(folder)
    for text in follow_jobs(folder, lambda: _active(folder)):
        print(text, end="", flush=True)
    return 0


def _active(folder: Path) -> list[str]:
    if not has_slurm():
        print("longrl: no SLURM here; this is all there is so far", file=sys.stderr)
        return []
    return [job.id for job in queued(folder) if job.active]
