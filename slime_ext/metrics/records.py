"""The JSONL records of a run: one writer a file, explicit step and attempt on every row.

One design choice: nothing is ever rewritten. A step done again after a restart appends a second row
under the new attempt number, marked `again`, and readers keep the last row of each step.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import zstandard

ATTEMPT_VARIABLE = "LONGRL_ATTEMPT"
"""Environment variable that carries the attempt number to every process of a run."""


class Records:
    """Writer of the records of one process; `folder` is the run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.attempt = int(os.environ.get(ATTEMPT_VARIABLE, "1"))
        self._seen: dict[str, set[tuple[int, str]]] = {}

    def write(
        self, stream: str, step: int, metrics: Mapping[str, float], dataset: str = ""
    ) -> None:
        """Append one row to `metrics/STREAM.jsonl`."""
        path = self.folder / "metrics" / f"{stream}.jsonl"
        if stream not in self._seen:
            rows = read_rows(path)
            self._seen[stream] = {(row["step"], row.get("dataset", "")) for row in rows}
        row: dict[str, Any] = {"step": step, "attempt": self.attempt, "time": time.time()}
        if (step, dataset) in self._seen[stream]:
            row["again"] = True
        if dataset:
            row["dataset"] = dataset
        self._seen[stream].add((step, dataset))
        _append(path, row | dict(metrics))

    def event(self, kind: str, **details: Any) -> None:
        """Append one row to `events.jsonl`: starts, restarts, lost engines, checkpoints, stops."""
        row = {"time": time.time(), "attempt": self.attempt, "kind": kind, **details}
        _append(self.folder / "events.jsonl", row)

    def rollouts(self, step: int, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write `rollouts/step_N.jsonl.zst`; a step done again replaces its file."""
        path = self.folder / "rollouts" / f"step_{step}.jsonl.zst"
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        text = b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)
        partial.write_bytes(zstandard.ZstdCompressor(level=3).compress(text))
        partial.replace(path)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All complete rows of a JSONL file; a last line cut by a crash is left out."""
    if not path.is_file():
        return []
    lines = path.read_bytes().split(b"\n")
    return [orjson.loads(line) for line in lines[:-1] if line]


def last_rows(path: Path) -> dict[int, dict[str, Any]]:
    """For each step its last row, in order of steps."""
    rows = {int(row["step"]): row for row in read_rows(path)}
    return dict(sorted(rows.items()))


def read_rollouts(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of one `rollouts/step_N.jsonl.zst`."""
    data = zstandard.ZstdDecompressor().decompress(path.read_bytes())
    for line in data.splitlines():
        yield orjson.loads(line)


def _append(path: Path, row: Mapping[str, Any]) -> None:
    """Append one line in a single write; a line that an earlier crash cut is removed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        if file.seek(0, os.SEEK_END) > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
