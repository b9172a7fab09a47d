"""How far a run is, from the records in its folder alone.

One design choice: nothing here asks SLURM, so the same lines appear on a laptop that holds a copy
of the folder, years after the job.
"""

from __future__ import annotations

import time
from pathlib import Path

from slime_ext.metrics.records import read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.metrics.stop_flag import StopFlag
from slime_ext.recipe.load import load_recipe
from slime_ext.weights.checkpoints import checkpoints, incomplete


def progress(run: Path, now: float | None = None) -> dict[str, str]:
    """Facts of the run by name, in the order they are shown; what is unknown is left out."""
    folder, facts = RunFolder(run), {}
    steps = _steps(folder)
    rows = read_rows(folder.metrics / "rollout.jsonl") or read_rows(folder.metrics / "train.jsonl")
    if rows:
        done = max(int(row["step"]) for row in rows) + 1
        again = sum(1 for row in rows if row.get("again"))
        facts["steps"] = f"{done} of {steps}" + (f", {again} done again" if again else "")
        seconds = (time.time() if now is None else now) - float(rows[-1]["time"])
        facts["last step"] = f"{_ago(seconds)} ago"
    elif steps:
        facts["steps"] = f"0 of {steps}"
    if attempts := folder.attempt():
        facts["attempts"] = str(attempts)
    whole = [one for one in checkpoints(folder.checkpoints) if not incomplete(one)]
    if whole:
        facts["checkpoint"] = whole[-1].name
    if folder.summary.is_file():
        facts["ended"] = "yes, summary.json is written"
    elif (asked := StopFlag(run).asked()) is not None:
        facts["asked to stop"] = asked
    events = read_rows(run / "events.jsonl")
    if events:
        facts["last event"] = str(events[-1]["kind"])
    return facts


def _steps(folder: RunFolder) -> int | None:
    for path in (folder.recipe, folder.path / "submitted.toml"):
        if path.is_file():
            return load_recipe(path).recipe.rollout.steps
    return None


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"
