"""The rows of a run so far, one a step, with what rollout and trainer said of it in one place.

One design choice: read again from the records at every look (a thousand steps are a few megabytes),
so that an attempt knows what those before it knew, and slime's trainer, whose rows another process
writes, is heard as soon as they are there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from slime_ext.metrics.records import last_rows

ABOUT_THE_ROW = ("step", "attempt", "time", "again")


def history(run: Path, step: int) -> list[dict[str, Any]]:
    """Rows up to and including `step`, in order. Later ones are of an attempt that was lost."""
    merged: dict[int, dict[str, Any]] = {}
    for stream in ("rollout", "train"):
        for number, row in last_rows(run / "metrics" / f"{stream}.jsonl").items():
            figures = {key: value for key, value in row.items() if key not in ABOUT_THE_ROW}
            merged.setdefault(number, {}).update(figures)
    return [merged[number] for number in sorted(merged) if number <= step]
