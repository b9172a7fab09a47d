"""Pruning beside a running program.

One design choice: a process of its own, because copying weights takes minutes and may fail in ways
that must not reach the process whose end is the end of the job.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from slime_ext.metrics.records import Records
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.weights.checkpoints import MARKER

LAST_S = 1800.0
"""How long the pruning after the last step may take: at 1 GB/s a copy of 900B parameters."""


class Pruner:
    """Called every few seconds: two looks at files, and a process where something has changed."""

    def __init__(self, folder: RunFolder, attempt: int) -> None:
        self._folder = folder
        self._log = folder.path / "attempts" / str(attempt) / "logs" / "prune.log"
        self._child: subprocess.Popen[bytes] | None = None
        self._seen: tuple[int, ...] = ()

    def __call__(self) -> None:
        """Start pruning where there is a checkpoint or an evaluation that was not there before."""
        if self._child is not None:
            if self._child.poll() is None:
                return
            self._ended()
        seen = self._state()
        if seen != self._seen:
            self._seen = seen
            self._start()

    def finish(self, seconds: float = LAST_S) -> None:
        """Prune once more and wait for it: the last evaluation comes after the last checkpoint."""
        for _ in range(2):
            self()
            if self._child is None:
                return
            try:
                self._child.wait(seconds)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
            self._ended()

    def _state(self) -> tuple[int, ...]:
        watched = (self._folder.checkpoints / MARKER, self._folder.metrics / "eval.jsonl")
        return tuple(path.stat().st_mtime_ns if path.is_file() else 0 for path in watched)

    def _start(self) -> None:
        command = [sys.executable, "-m", "launch.job.prune", str(self._folder.path)]
        try:
            with self._log.open("ab") as log:
                self._child = subprocess.Popen(command, stdout=log, stderr=log)
        except OSError as error:
            self._trouble(str(error))

    def _ended(self) -> None:
        assert self._child is not None
        code, self._child = self._child.returncode, None
        if code:
            lines = _lines(self._log)
            self._trouble(f"exit code {code}: {lines[-1] if lines else 'no word'}")

    def _trouble(self, reason: str) -> None:
        print(f"checkpoints were not pruned, {reason}")
        try:
            Records(self._folder.path).event("prune_failed", reason=reason)
        except OSError:
            print("the event could not be recorded either")


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.is_file() else []
