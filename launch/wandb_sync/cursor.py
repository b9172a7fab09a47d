"""How far a run is uploaded, kept in its folder.

One design choice: the server's own count decides where an upload goes on; the cursor only saves the
question when there is nothing new, and tells which uploaded steps were done again since.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from launch.wandb_sync.rows import Row
from slime_ext.metrics.run_folder import RunFolder

CURSOR_FILE = "wandb_sync.json"


@dataclass(frozen=True, slots=True)
class Cursor:
    """What was uploaded."""

    run: str = ""
    step: int = -1
    """The last step; -1 before any."""
    time: float = 0.0
    """Time of the newest record among the uploaded ones."""
    dashboard: str = ""
    """Address of the saved dashboard."""

    def after(self, run: str, rows: Sequence[Row]) -> Cursor:
        """The cursor once `rows` are uploaded too."""
        newest = max((row.time for row in rows), default=self.time)
        last = max((row.step for row in rows), default=self.step)
        return replace(self, run=run, step=max(self.step, last), time=max(self.time, newest))


@dataclass(frozen=True, slots=True)
class Pending:
    """What an upload would do."""

    new: list[Row]
    changed: list[int]
    """Uploaded steps with a record that is newer than their upload: W&B keeps the first values."""
    held: int | None
    """The newest step of a run that goes on: its record may be incomplete."""


def pending(rows: Sequence[Row], cursor: Cursor, over: bool) -> Pending:
    """Split the rows of a run into new, changed and held back ones."""
    held = rows[-1].step if rows and not over else None
    new = [row for row in rows if row.step > cursor.step and row.step != held]
    changed = [row.step for row in rows if row.step <= cursor.step and row.time > cursor.time]
    return Pending(new, changed, held if held is not None and held > cursor.step else None)


def read_cursor(folder: RunFolder) -> Cursor:
    """The stored cursor, or one that says that nothing was uploaded."""
    path = folder.path / CURSOR_FILE
    if not path.is_file():
        return Cursor()
    stored = json.loads(path.read_text())
    return Cursor(**stored)


def replaced_dashboard(folder: RunFolder, address: str) -> None:
    """Remember where the dashboard was saved."""
    write_cursor(folder, replace(read_cursor(folder), dashboard=address))


def write_cursor(folder: RunFolder, cursor: Cursor) -> None:
    """Store the cursor."""
    folder.write_json(folder.path / CURSOR_FILE, asdict(cursor))
