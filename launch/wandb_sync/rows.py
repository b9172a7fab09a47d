"""The rows a run has in W&B, from its records.

One design choice: one row a step, with all streams in it and the step as W&B's own step, so that
W&B's default axis is the training step; of a step done again the last record counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from slime_ext.metrics.records import read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.metrics.wandb_run import AXES

ABOUT_THE_ROW = frozenset({"step", "attempt", "time", "again", "dataset"})


@dataclass(slots=True)
class Row:
    """Everything recorded of one step."""

    step: int
    values: dict[str, float] = field(default_factory=dict)
    """By W&B's names, the step on each axis included."""
    time: float = 0.0
    """When the newest of its records was written, in seconds since 1970."""
    attempts: set[int] = field(default_factory=set)


def wandb_rows(folder: RunFolder) -> list[Row]:
    """All rows of a run in order of steps."""
    rows: dict[int, Row] = {}
    for stream, axis in AXES.items():
        last = {
            (int(record["step"]), str(record.get("dataset", ""))): record
            for record in read_rows(folder.metrics / f"{stream}.jsonl")
        }
        for (step, dataset), record in last.items():
            row = rows.setdefault(step, Row(step))
            prefix = f"{stream}/{dataset}/" if dataset else f"{stream}/"
            # slime's timings are recorded with its trainer's metrics, under their own group.
            row.values[axis] = step
            row.values |= {
                key if key.startswith("perf/") else prefix + key: value
                for key, value in record.items()
                if key not in ABOUT_THE_ROW and value is not None
            }
            row.time = max(row.time, float(record["time"]))
            row.attempts.add(int(record["attempt"]))
    return [rows[step] for step in sorted(rows)]


def is_over(folder: RunFolder) -> bool:
    """Whether nothing more will be recorded of the run's newest step."""
    if folder.summary.is_file():
        return True
    events = read_rows(folder.path / "events.jsonl")
    return bool(events) and events[-1]["kind"] in ("finished", "stopped")
