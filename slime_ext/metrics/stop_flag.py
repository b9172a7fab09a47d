"""The request to save and stop, as files in the run folder that every process of a run can see.

One design choice: two files, the wish (`stop`, written by the job script) and the answer
(`stopped`, written by whoever saved), so that a crash after the wish is no stop on request.
"""

from __future__ import annotations

import json
from pathlib import Path

STOPPED = 75
"""Exit code of a run that was asked to stop, saved and can go on (EX_TEMPFAIL)."""
ALARMED = 76
"""Exit code of a run that an alarm stopped: saved as well, but a person has to look first."""


def exit_code(reason: str | None) -> int:
    """What a saved run ends with that was stopped for `reason`."""
    return ALARMED if (reason or "").startswith("alarm ") else STOPPED


class StopFlag:
    """The two files of one run."""

    def __init__(self, run: Path) -> None:
        self._wish = run / "stop"
        self._answer = run / "stopped"

    def asked(self) -> str | None:
        """Who asked, or None."""
        try:
            return self._wish.read_text().strip() or "somebody"
        except FileNotFoundError:
            return None

    def ask(self, who: str) -> None:
        """Ask the run to save and stop."""
        self._wish.write_text(who + "\n")

    def answer(self, step: int) -> None:
        """Say that everything up to and including `step` is saved."""
        partial = self._answer.with_suffix(".partial")
        partial.write_text(json.dumps({"step": step}))
        partial.replace(self._answer)

    def saved_step(self) -> int | None:
        """The step a run saved on request, None where it did not."""
        try:
            return int(json.loads(self._answer.read_text())["step"])
        except FileNotFoundError:
            return None

    def clear(self) -> None:
        """Forget wish and answer, at the start of an attempt."""
        for path in (self._wish, self._answer):
            path.unlink(missing_ok=True)
