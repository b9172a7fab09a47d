"""How long a step takes and when the run ends.

One design choice: the median over this attempt's steps. The hours in the queue between attempts are
no step, another attempt may have other nodes, and an evaluation in between is no typical step.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any


def step_seconds(stamps: Sequence[Mapping[str, Any]]) -> list[float]:
    """Seconds from row to row (`time`) of the newest row's attempt, in order."""
    if not stamps:
        return []
    attempt = stamps[-1]["attempt"]
    times = [float(row["time"]) for row in stamps if row["attempt"] == attempt]
    return [later - sooner for sooner, later in itertools.pairwise(times)]


def median_step(stamps: Sequence[Mapping[str, Any]]) -> float | None:
    """Median seconds a step of the newest attempt; None before its second step."""
    found = step_seconds(stamps)
    return median(found) if found else None


def seconds_left(stamps: Sequence[Mapping[str, Any]], steps: int, now: float) -> float | None:
    """Seconds until the last of `steps`, counted from `now`; None while unknown, never below 0."""
    each = median_step(stamps)
    if each is None:
        return None
    left = steps - 1 - int(stamps[-1]["step"])
    return max(0.0, left * each - max(0.0, now - float(stamps[-1]["time"])))


def duration(seconds: float) -> str:
    """ "42 s", "7 min", "3 h 20 min", "2 d 4 h"."""
    minutes, hours, days = seconds / 60, seconds / 3600, seconds / 86400
    if seconds < 100:
        return f"{max(0.0, seconds):.0f} s" if seconds >= 10 else f"{max(0.0, seconds):.1f} s"
    if minutes < 100:
        return f"{minutes:.0f} min"
    if hours < 48:
        return f"{int(hours)} h {int(minutes) % 60} min"
    return f"{int(days)} d {int(hours) % 24} h"
