"""The output of a run's jobs: read, cut into starts, followed.

One design choice: SLURM appends each start of a requeued job to one file, and the script opens
every start with a line of one form; an attempt is the start that names it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from launch.slurm.queue import job_ids
from slime_ext.errors import ExplainedError

START = re.compile(r"^job \d+: starts on ", re.MULTILINE)
ATTEMPT = re.compile(r"^attempt (\d+), ", re.MULTILINE)


class NoLogError(ExplainedError):
    """The run has no such output."""


def log_of(run: Path, job: str) -> Path:
    """The file a job writes."""
    return run / "logs" / f"job-{job}.out"


def newest_log(run: Path) -> Path:
    """Output of the newest job that has any. Raises NoLogError."""
    for job in reversed(job_ids(run)):
        if log_of(run, job).is_file():
            return log_of(run, job)
    ids = job_ids(run)
    said = f"job {ids[-1]} has printed nothing yet" if ids else "it was never submitted"
    raise NoLogError(f"{run.name} has no output: {said}; `longrl status {run.name}` says more")


def attempt_text(run: Path, attempt: int) -> str:
    """What the start printed that became `attempt`. Raises NoLogError naming those there are."""
    found = {}
    for job in job_ids(run):
        path = log_of(run, job)
        for part in _starts(path.read_text(errors="replace")) if path.is_file() else []:
            for number in ATTEMPT.findall(part):
                found[int(number)] = part
    if attempt not in found:
        known = ", ".join(map(str, sorted(found))) or "none"
        raise NoLogError(f"{run.name} printed no attempt {attempt}; there are: {known}")
    return found[attempt]


def follow(
    run: Path,
    active: Callable[[], list[str]],
    sleep: Callable[[float], None] = time.sleep,
    every_s: float = 1.0,
) -> Iterator[str]:
    """Text of the run's jobs as it appears, one job after the other.

    `active` gives the ids of jobs that wait or run; once it is empty and everything is read, the
    text ends.
    """
    ids = job_ids(run)
    started = [job for job in ids if log_of(run, job).is_file()]
    position = 0
    job = started[-1] if started else (ids[-1] if ids else "")
    while job:
        alive = active()
        path = log_of(run, job)
        if path.is_file():
            with path.open(errors="replace") as file:
                file.seek(position)
                text = file.read()
                position = file.tell()
            if text:
                yield text
        if job not in alive:
            later = job_ids(run)[job_ids(run).index(job) + 1 :]
            job = next((one for one in later if one in alive or log_of(run, one).is_file()), "")
            position = 0
            continue
        sleep(every_s)


def _starts(text: str) -> list[str]:
    """The text of each start; a log without the opening line is one start."""
    places = [match.start() for match in START.finditer(text)] or [0]
    return [text[a:b] for a, b in zip(places, [*places[1:], len(text)], strict=True)]
