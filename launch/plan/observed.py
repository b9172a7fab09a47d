"""What the first steps of a run say about its speed.

One design choice: a step's length is the time between the records of two steps, which every host
writes, so no timer of a particular host is needed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from slime_ext.errors import ExplainedError
from slime_ext.metrics.records import read_rows

STEPS = 5


class RunRecordsError(ExplainedError, ValueError):
    """A run folder whose records cannot correct a plan."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Medians over the first steps of a run."""

    run: str
    steps: int
    """Steps looked at; the first has no step before it to be timed from."""
    rollout_s: float
    step_s: float
    response_tokens: float
    """Mean response."""
    samples: float
    """Responses of a step."""


def observe(run: Path) -> Observed:
    """Read `metrics/rollout.jsonl` of a run folder, its first five steps.

    Raises RunRecordsError where there are fewer than two steps of one attempt.
    """
    path = run / "metrics" / "rollout.jsonl"
    rows = read_rows(path)[:STEPS]
    if len(rows) < 2:
        raise RunRecordsError(
            f"{path} holds {len(rows)} steps and a plan is corrected from two or more; name the "
            "folder of a run that has taken two steps, or leave --run out"
        )
    gaps = [
        later["time"] - earlier["time"]
        for earlier, later in itertools.pairwise(rows)
        if later["attempt"] == earlier["attempt"] and later["step"] == earlier["step"] + 1
    ]
    timed = [row for row in rows if "seconds" in row and "length/mean" in row]
    if not gaps or not timed:
        raise RunRecordsError(
            f"{path} lacks two steps in a row of one attempt with `seconds` and `length/mean`; "
            "leave --run out, or name another run"
        )
    return Observed(
        run=str(run),
        steps=len(rows),
        rollout_s=median(row["seconds"] for row in timed),
        step_s=median(gaps),
        response_tokens=fmean(row["length/mean"] for row in timed),
        samples=fmean(row["samples"] for row in timed),
    )
