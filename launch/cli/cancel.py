"""`longrl cancel`: end the jobs of a run."""

from __future__ import annotations

from pathlib import Path

from launch.cli.options import RunName, RunsFolder
from launch.slurm.find_run import find_run
from launch.slurm.queue import cancel


def cancel_run(run: RunName, runs: RunsFolder = Path("runs")) -> int:
    """End every waiting and running job of a run, and no other job.

    The run folder stays: `longrl submit` goes on from its newest complete checkpoint.

    Args:
        run: Name or folder of a run.
        runs: Folder that holds the run folders.
    """
    folder = find_run(run, runs)
    ids = cancel(folder)
    if ids:
        print(f"cancelled job {', '.join(ids)} of {folder.name}")
    else:
        print(f"{folder.name} has no job that waits or runs")
    return 0
