"""slime's trainer metrics, from its TensorBoard event files into `metrics/train.jsonl`.

One design choice: a step is written once, when a later entry of the same file shows that it is
whole; the trainer's writer keeps entries back for up to two minutes, and half a row would need a
second one. What was merged is read back from the records, so that the next attempt brings in what
a killed one had left.
"""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from slime_ext.metrics.records import Records, read_rows
from slime_ext.metrics.run_folder import RunFolder

FILES = "events.out.tfevents.[0-9]*"
TRAIN, PERF = "train/", "perf/"
LAST = "perf/wait_time_ratio"
"""What slime's trainer logs last of a rollout."""


class TrainerRows:
    """Merges what is new at every look; one process of a run may hold one."""

    def __init__(self, folder: RunFolder, updates: int, attempt: int) -> None:
        """`updates` are optimiser updates a rollout, by which slime's trainer numbers its steps."""
        self._folder = folder
        self._events = folder.path / "tensorboard"
        self._updates = updates
        self._attempt = attempt
        self._records = Records(folder.path)
        rows = read_rows(folder.metrics / "train.jsonl")
        self._written = {(row["step"], row["attempt"]) for row in rows}
        self._files: dict[Path, _EventFile] = {}
        self._reads = importlib.util.find_spec("tensorboard") is not None
        if not self._reads:
            print(
                "the trainer's metrics stay in tensorboard/ and out of metrics/train.jsonl, and "
                "alarms do not see them: pip install tensorboard"
            )

    def look(self) -> int:
        """Write the steps that have become whole; returns how many."""
        return self._merge(ended=False)

    def finish(self) -> int:
        """Write the rest, once the trainer has ended; returns how many steps."""
        return self._merge(ended=True)

    def _merge(self, ended: bool) -> int:
        if not self._reads:
            return 0
        count = 0
        for path in sorted(self._events.rglob(FILES)):
            if path not in self._files:
                self._files[path] = _EventFile(path, self._attempt_of(path), self._updates)
            file = self._files[path]
            file.read()
            for step, row in file.take(ended or file.attempt < self._attempt):
                count += self._write(file.attempt, step, row)
        return count

    def _write(self, attempt: int, step: int, row: dict[str, float]) -> bool:
        if (step, attempt) in self._written:
            return False
        self._written.add((step, attempt))
        self._records.attempt = attempt
        self._records.write("train", step, row)
        return True

    def _attempt_of(self, path: Path) -> int:
        """The attempt that had begun when the file was; its name holds the second it was made."""
        made = int(path.name.split(".")[3])
        begun = {
            int(place.parent.name): place.stat().st_mtime
            for place in (self._folder.path / "attempts").glob("[0-9]*/env.json")
        }
        # A whole second is cut off the name.
        return max((n for n, when in begun.items() if when < made + 1), default=1)


class _EventFile:
    """One event file: what was read of it, by rollout step."""

    def __init__(self, path: Path, attempt: int, updates: int) -> None:
        from tensorboard.backend.event_processing.event_file_loader import LegacyEventFileLoader

        self.attempt = attempt
        self._updates = updates
        self._loader = LegacyEventFileLoader(str(path))
        self._found: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._whole = -1
        """Newest step of which nothing more can come."""

    def read(self) -> None:
        """Read to the end; a record that is not all there is read again next time."""
        for event in self._loader.Load():
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    self._add(value.tag, int(event.step), value.simple_value, event.wall_time)

    def take(self, all_of_it: bool) -> list[tuple[int, dict[str, float]]]:
        """Rows that are whole, in order of steps; each is given once. Updates are averaged."""
        rows = []
        for step in sorted(self._found):
            if all_of_it or step <= self._whole:
                columns = self._found.pop(step)
                times = columns.pop("time")
                # The rollout's own file has times alone, and its figures are recorded already.
                if any(not key.startswith(PERF) for key in columns):
                    row = {key: fmean(values) for key, values in columns.items()}
                    rows.append((step, row | {"time": max(times)}))
        return rows

    def _add(self, tag: str, step: int, value: float, wall: float) -> None:
        if tag.startswith(TRAIN):
            step, key = step // self._updates, tag.removeprefix(TRAIN)
            self._whole = max(self._whole, step - 1)
        elif tag.startswith(PERF):
            key = tag
        else:
            return
        self._found[step][key].append(value)
        self._found[step]["time"].append(wall)
        if tag == LAST:
            self._whole = max(self._whole, step)
