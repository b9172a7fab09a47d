"""`longrl status`: where the jobs of a run stand, and how far it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from launch.cli.options import RunsFolder
from launch.slurm.find_run import all_runs, find_run
from launch.slurm.progress import progress
from launch.slurm.queue import QueuedJob, QueueError, accounted, job_ids, queued


def status(
    run: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="RUN")] = None,
    runs: RunsFolder = Path("runs"),
) -> int:
    """Show a run's jobs and its progress; without RUN, a line for each run.

    Args:
        run: Name or folder of a run.
        runs: Folder that holds the run folders.
    """
    console = Console(soft_wrap=True, highlight=False)
    if run is None:
        _list_all(runs, console)
        return 0
    folder = find_run(run, runs)
    console.print(f"{folder.name}  {folder}", markup=False)
    jobs, trouble = known_jobs(folder)
    if jobs:
        console.print(_table(jobs))
    if trouble:
        console.print(trouble, markup=False)
    for name, value in progress(folder).items():
        console.print(f"  {name:<14}{value}", markup=False)
    return 0


def known_jobs(folder: Path) -> tuple[list[QueuedJob], str]:
    """The run's jobs as the queue or the accounts show them, and what stands in the way."""
    ids = job_ids(folder)
    if not ids:
        return [], "  never submitted to a cluster"
    try:
        live = {job.id: job for job in queued(folder)}
    except QueueError as error:
        last = f"its last job is {ids[-1]}"
        return [], f"  {last}; from the records of the run folder alone: {error}"
    past = {job.id: job for job in accounted([job for job in ids if job not in live])}
    jobs = [live.get(job) or past.get(job) for job in ids]
    gone = [number for number, job in zip(ids, jobs, strict=True) if job is None]
    said = f"  SLURM no longer knows job {', '.join(gone)}" if gone else ""
    return [job for job in jobs if job is not None], said


def _list_all(runs: Path, console: Console) -> None:
    found = all_runs(runs)
    if not found:
        console.print(
            f"no run in {runs}; `longrl submit RECIPE` or `longrl train RECIPE` makes one"
        )
        return
    table = Table("run", "job", "state", "steps", "last step", box=None)
    for folder in found:
        jobs, _ = known_jobs(folder)
        last = jobs[-1] if jobs else None
        facts = progress(folder)
        state = last.state if last else ("ended" if "ended" in facts else "")
        row = (last.id if last else "", state, facts.get("steps", ""), facts.get("last step", ""))
        table.add_row(folder.name, *row)
    console.print(table)


def _table(jobs: list[QueuedJob]) -> Table:
    table = Table("job", "state", "reason", "elapsed", "nodes", "exit code", box=None)
    for job in jobs:
        table.add_row(job.id, job.state, job.reason, job.elapsed, job.nodes, job.exit_code)
    return table
