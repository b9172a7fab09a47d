"""`longrl sync`: a run's records as one W&B run, and the dashboard of its project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from launch.cli.options import RunName, RunsFolder
from launch.slurm.find_run import find_run
from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder


def sync(
    run: RunName,
    runs: RunsFolder = Path("runs"),
    offline: bool = False,
    everything: Annotated[bool, tyro.conf.arg(name="all")] = False,
    anew: bool = False,
    dashboard: bool = False,
    limit_s: float = 600.0,
) -> int:
    """Upload the records of a run to W&B as one run; again and again while it grows.

    Args:
        run: Name or folder of a run.
        runs: Folder that holds the run folders.
        offline: Write one offline run of wandb into the run folder and send nothing.
        everything: Send the newest step of a run that has not ended, complete or not.
        anew: Make another W&B run and send everything to it.
        dashboard: Also save the dashboard in the project.
        limit_s: Seconds the upload may take.
    """
    from launch.wandb_sync.sync import begin_anew, sync_offline, sync_online

    folder = RunFolder(find_run(run, runs))
    if offline and dashboard:
        raise ExplainedError("a dashboard is kept by the server: leave out --offline")
    if anew:
        begin_anew(folder)
    done = sync_offline(folder, limit_s) if offline else sync_online(folder, everything, limit_s)
    print(f"{done.rows} rows {'written' if offline else 'sent'}  {done.url}".rstrip())
    if done.changed:
        steps = ", ".join(map(str, done.changed))
        print(f"recorded again since they were sent: steps {steps}; W&B keeps the first, or --anew")
    if done.held is not None:
        print(f"step {done.held} is not sent: the run may go on in it; --all sends it now")
    if dashboard:
        from launch.wandb_sync.dashboard import save_dashboard

        print(f"dashboard: {save_dashboard(folder)}")
    return 0
