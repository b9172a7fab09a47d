"""One look at a run folder: what a frame is drawn from.

One design choice: everything is read anew at every look, and from files only, so that a new
attempt, another node or a copy of the folder needs no care; no server, no lock.
"""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch.slurm.find_run import MARKS, find_run, is_run
from slime_ext.errors import ExplainedError
from slime_ext.metrics.alarms.alarms import standing
from slime_ext.metrics.alarms.history import history
from slime_ext.metrics.records import Records, read_rows
from slime_ext.metrics.run_folder import RunFolder

Row = Mapping[str, Any]
RECIPES = ("recipe.toml", "submitted.toml")
"""The resolved recipe; the second until the first attempt has begun."""
QUIET_S = 900.0
"""After the last rollout: its update, a checkpoint and an evaluation may still come."""


class NothingToWatchError(ExplainedError):
    """The folder is there and holds no run."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run at one moment.

    `steps` are the recipe's; `stamps` rows of the rollout record as they were written, steps done
    again included; `rows` one row a step up to the newest, rollout and trainer together; `evals`
    rows by data set; `begun` when each attempt began (seconds since the epoch).
    """

    name: str
    folder: Path
    about: str
    steps: int
    stamps: list[Row]
    rows: list[Row]
    evals: dict[str, list[Row]]
    events: list[Row]
    alarms: list[Row]
    begun: dict[int, float]
    summary: Row | None
    now: float

    @property
    def done(self) -> int:
        """Steps the newest attempt has behind it."""
        return int(self.stamps[-1]["step"]) + 1 if self.stamps else 0

    @property
    def attempt(self) -> int:
        """The newest attempt, 0 before the first."""
        return max(self.begun, default=0)

    @property
    def ended(self) -> bool:
        """Whether there is nothing left to wait for: a summary, or all steps and then silence, as a
        run on a cluster ends."""
        if self.summary is not None:
            return True
        return 0 < self.steps <= self.done and self.now - float(self.stamps[-1]["time"]) > QUIET_S


def run_to_watch(word: str, runs: Path) -> Path:
    """The folder of the run `word`.

    Raises NoRunError where there is none, NothingToWatchError for a folder that holds no run.
    """
    place = Path(word)
    if place.is_dir() and not is_run(place) and not is_run(runs / word):
        raise NothingToWatchError(
            f"{word} is no run folder: it holds none of {', '.join(MARKS)}; name a run of "
            "`longrl train` or `longrl submit`, by its folder or by its name below --runs"
        )
    return find_run(word, runs)


def snapshot(run: Path, now: float | None = None) -> Snapshot:
    """Read the run folder `run`; what is not there yet is empty. Half a last line is left out."""
    folder, recipe = RunFolder(run), _recipe(run)
    stamps: list[Row] = list(read_rows(folder.metrics / "rollout.jsonl"))
    step = int(stamps[-1]["step"]) if stamps else -1
    events: list[Row] = list(read_rows(run / "events.jsonl"))
    evals: dict[str, dict[int, Row]] = {}
    for row in read_rows(folder.metrics / "eval.jsonl"):
        evals.setdefault(str(row.get("dataset", "eval")), {})[int(row["step"])] = row
    holding = standing(Records(run))
    newest = {event["rule"]: event for event in events if event["kind"] == "alarm"}
    return Snapshot(
        name=run.name,
        folder=run,
        about=_about(recipe),
        steps=int(recipe.get("rollout", {}).get("steps", 0)),
        stamps=stamps,
        rows=list(history(run, step)),
        evals={name: [rows[at] for at in sorted(rows)] for name, rows in evals.items()},
        events=events,
        alarms=[event for rule, event in newest.items() if rule in holding],
        begun=_begun(run),
        summary=_summary(folder),
        now=time.time() if now is None else now,
    )


def _recipe(run: Path) -> dict[str, Any]:
    """Its tables as they stand: a view must not fail where a key has got another meaning since."""
    for name in RECIPES:
        if (run / name).is_file():
            return tomllib.loads((run / name).read_text())
    return {}


def _about(recipe: Mapping[str, Any]) -> str:
    """What is trained by what, in one line."""
    parts = (
        recipe.get("model", {}).get("path"),
        recipe.get("reward", {}).get("kind"),
        recipe.get("backend"),
    )
    return ", ".join(str(part) for part in parts if part)


def _begun(run: Path) -> dict[int, float]:
    places = (run / "attempts").glob("[0-9]*/env.json")
    return {int(place.parent.name): place.stat().st_mtime for place in places}


def _summary(folder: RunFolder) -> Row | None:
    return json.loads(folder.summary.read_text()) if folder.summary.is_file() else None
