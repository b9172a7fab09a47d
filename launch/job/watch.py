"""The look at a running program every few seconds: does it still make progress?

One design choice: progress is a new row in the run's records, the only thing that a hung
collective, a dead engine and a stuck judge all stop; processes that merely exist say nothing. The
program is left as it is: the job script looks into it on every node before it ends the job.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from launch.job.engines import engine_state
from slime_ext.metrics.records import Records, last_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe

STUCK = 70
"""Exit code of a job that was ended because nothing moved (EX_SOFTWARE)."""


class Watch:
    """Asked every few seconds; None to go on, an exit code to end the job."""

    def __init__(
        self,
        recipe: Recipe,
        folder: RunFolder,
        attempt: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = recipe.watchdog
        self._folder = folder
        self._attempt = attempt
        self._clock = clock
        self._started = clock()

    def __call__(self) -> int | None:
        """Exit code STUCK once nothing has moved for longer than `limit_s`."""
        silent = self._clock() - max(self._started, self._last_sign())
        if silent <= self.limit_s():
            return None
        print(f"no progress for {silent:.0f} s, more than {self.limit_s():.0f} s: the job is ended")
        self._describe(silent)
        return STUCK

    def limit_s(self) -> float:
        """Seconds without a sign of life after which a run counts as stuck."""
        rows = last_rows(self._records("rollout")).values()
        steps = [
            later["time"] - sooner["time"]
            for sooner, later in itertools.pairwise(rows)
            # Between two attempts lies the queue.
            if later["attempt"] == sooner["attempt"]
        ]
        median = statistics.median(steps) if steps else 0.0
        return max(self._settings.minimum_s, self._settings.factor * median)

    def _describe(self, silent_s: float) -> None:
        """Save the engines' state and an event; a disk that takes neither is no reason to go on."""
        state = engine_state(self._folder.path)
        print(state.describe())
        try:
            logs = self._folder.path / "attempts" / str(self._attempt) / "logs"
            self._folder.write_json(logs / "engines.json", state.to_json())
            Records(self._folder.path).event("stuck", silent_s=silent_s, engines=state.describe())
        except OSError as error:
            print(f"the state of the engines could not be saved: {error}")

    def _last_sign(self) -> float:
        found = (self._records(stream) for stream in ("rollout", "train", "eval"))
        return max((path.stat().st_mtime for path in found if path.is_file()), default=0.0)

    def _records(self, stream: str) -> Path:
        return self._folder.metrics / f"{stream}.jsonl"
