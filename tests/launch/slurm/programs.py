"""Stand-ins for SLURM's commands on PATH, which record their arguments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


class Programs:
    """A folder of programs that comes first on PATH, or stands alone there."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "bin"
        self.folder.mkdir()
        self._record = folder / "calls"
        monkeypatch.setenv("PATH", f"{self.folder}:/usr/bin:/bin")

    def add(self, name: str, output: str = "", code: int = 0, error: str = "") -> None:
        """A program that prints `output` and `error` and ends with `code`."""
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        out.write_text(output)
        err.write_text(error)
        program = self.folder / name
        program.write_text(
            f'#!/bin/bash\nprintf "%s\\n" "{name} $*" >> {self._record}\n'
            f"cat {out}; cat {err} >&2; exit {code}\n"
        )
        program.chmod(0o755)

    def calls(self, name: str) -> list[str]:
        """The calls of a program so far, each as one line."""
        text = self._record.read_text() if self._record.is_file() else ""
        return [line for line in text.splitlines() if line.split()[0] == name]


def hide(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """A PATH without SLURM."""
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    monkeypatch.setenv("PATH", str(empty))
    assert not any((Path(one) / "sbatch").exists() for one in os.environ["PATH"].split(":"))


def line(job: str, state: str, script: Path, reason: str = "None") -> str:
    """One line of squeue in the form that is asked for."""
    return f"{job}|{state}|{reason}|1:02|2|n[1-2]|{script}\n"
