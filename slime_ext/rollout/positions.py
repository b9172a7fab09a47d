"""Where in the data a run stood after each rollout: one small JSON file a rollout.

One design choice: a file for every rollout, not only for those with a checkpoint, because a save on
request is made by other processes, later, and for a rollout nobody knew before.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

LATEST = 4
"""Rollouts whose position stays without a checkpoint: a save on request is for the newest but one,
and slime's asynchronous loop is one further ahead."""


class Positions:
    """The files of one run, in the folder of its checkpoints."""

    def __init__(self, checkpoints: Path) -> None:
        self._checkpoints = checkpoints

    def file(self, rollout: int) -> Path:
        """Where the position after `rollout` lies."""
        return self._checkpoints / "rollout" / f"longrl_data_source_{rollout}.json"

    def write(self, rollout: int, state: dict[str, Any]) -> None:
        """Store `state` as the position after `rollout`."""
        path = self.file(rollout)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(state))
        partial.replace(path)

    def read(self, rollout: int) -> dict[str, Any]:
        """The position after `rollout`; raises FileNotFoundError that says what to do."""
        path = self.file(rollout)
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is missing, so the next prompt is unknown; resume from a checkpoint that "
                "has it, or start a new run"
            )
        state: dict[str, Any] = json.loads(path.read_text())
        return state

    def forget(self, newest: int) -> None:
        """Remove what neither a checkpoint nor a save on request after `newest` can need."""
        for path in self.file(0).parent.glob("longrl_data_source_*.json"):
            found = re.fullmatch(r"longrl_data_source_(\d+)\.json", path.name)
            if found is None or int(found[1]) > newest - LATEST:
                continue
            if not (self._checkpoints / f"iter_{int(found[1]):07d}").is_dir():
                path.unlink(missing_ok=True)
