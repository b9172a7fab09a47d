"""What SLURM says of a run's jobs, and their end.

One design choice: a job counts as the run's own only where its id stands in the run's `jobs.txt`
and SLURM names the run's script as its command; ids are used again, and names are shared.
"""

from __future__ import annotations

import getpass
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slime_ext.errors import ExplainedError

JOBS = "jobs.txt"
SCRIPT = "job.sh"
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED")
_FIELDS = "%A|%T|%r|%M|%D|%N|%o"
_COLUMNS = 7
_ACCOUNTING = "JobID,State,Reason,Elapsed,NNodes,NodeList,ExitCode"


class QueueError(ExplainedError):
    """SLURM cannot be asked, or refused."""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One job as SLURM shows it."""

    id: str
    state: str
    reason: str
    elapsed: str
    nodes: str
    exit_code: str = ""

    @property
    def active(self) -> bool:
        """Whether it runs, waits or is about to end."""
        return self.state not in ENDED


def job_ids(run: Path) -> list[str]:
    """Jobs this run was ever submitted as, oldest first."""
    path = run / JOBS
    return path.read_text().split() if path.is_file() else []


def has_slurm() -> bool:
    """Whether SLURM's commands are on this machine."""
    return shutil.which("squeue") is not None


def queued(run: Path) -> list[QueuedJob]:
    """The run's own jobs that SLURM still knows, in the order of their submission.

    Raises QueueError without SLURM, or with squeue's own words.
    """
    ids = job_ids(run)
    if not ids:
        return []
    command = ["squeue", "--noheader", "--states=all", f"--user={getpass.getuser()}"]
    found = {}
    for line in _run([*command, f"--format={_FIELDS}"]).splitlines():
        fields = line.split("|", _COLUMNS - 1)
        if len(fields) == _COLUMNS and fields[0] in ids and _is_script(fields[6], run):
            number, state, reason, elapsed, count, names, _ = fields
            nodes = f"{count}: {names}" if names else count
            found[number] = QueuedJob(number, state, reason, elapsed, nodes)
    return [found[number] for number in ids if number in found]


def accounted(ids: Sequence[str]) -> list[QueuedJob]:
    """The jobs by sacct, which remembers them for months; empty where it keeps no accounts."""
    if not ids or shutil.which("sacct") is None:
        return []
    command = ["sacct", "--noheader", "--parsable2", "--allocations", f"--format={_ACCOUNTING}"]
    done = subprocess.run(
        [*command, f"--jobs={','.join(ids)}"], capture_output=True, text=True, timeout=60
    )
    jobs = []
    for line in done.stdout.splitlines() if done.returncode == 0 else []:
        number, state, reason, elapsed, count, names, code = line.split("|")
        word = state.partition(" ")[0]
        jobs.append(QueuedJob(number, word, reason, elapsed, f"{count}: {names}", code))
    return jobs


def cancel(run: Path) -> list[str]:
    """End every job of the run that waits or runs; their ids.

    Raises QueueError without SLURM, or with scancel's own words.
    """
    ids = [job.id for job in queued(run) if job.active]
    # A chained job starts when the one before it ends, so the last goes first.
    if ids:
        _run(["scancel", *reversed(ids)])
    return ids


def _is_script(command: str, run: Path) -> bool:
    return command.split()[:1] == [str((run / SCRIPT).absolute())]


def _run(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        raise QueueError(
            f"there is no {command[0]} on this machine; run this on a login node of the cluster"
        )
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise QueueError(f"{command[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout
