"""Exporting the checkpoints of a run while it trains.

One design choice: the folders are the state. A checkpoint is exported when it is whole and its
folder is not there yet, so a watch can be stopped and started at any time, on any machine that sees
the run. It works at the lowest priority and touches nothing of the run's.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slime_ext.metrics.evaluated import figures
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.load import load_recipe
from slime_ext.weights.checkpoints import checkpoints, incomplete, iteration_of

Export = Callable[[Path, Path], None]
"""Exports a checkpoint as a folder; raises where it cannot."""
BEST = "best.json"
"""Which of the exported folders is the best, where only that is kept."""
LOWEST = 19
"""Niceness at which a process runs when nothing else wants to."""


@dataclass(frozen=True, slots=True)
class Following:
    """How a run is followed."""

    watch: bool = False
    """Export each new complete checkpoint of a run into OUT (RUN/exports unless named) until the
    run has ended, at the lowest priority."""
    best: str | None = None
    """With --watch: keep only the checkpoint with the largest of this held-out metric, e.g.
    reward/outcome."""
    every_s: float = 30.0
    """With --watch: seconds between two looks."""


@dataclass
class Watch:
    """The exports of one run: each checkpoint as `out/iter_N`, or with `best` only the one whose
    evaluation has the largest `best`."""

    run: RunFolder
    out: Path
    export: Export
    best: str | None = None

    def follow(
        self, every_s: float, sleep: Callable[[float], object] = time.sleep
    ) -> Iterator[str]:
        """Look every `every_s` seconds until the run has ended; what was done, line by line.

        Raises what `export` raises, unless the checkpoint it was given has been removed meanwhile.
        """
        while True:
            # Read before the look: what is written between the two belongs to the look.
            ended = self.ended()
            yield from self.look()
            if ended:
                return
            sleep(every_s)

    def look(self) -> Iterator[str]:
        """Export what there is to export now."""
        for checkpoint in self._due():
            target = self.out / checkpoint.name
            try:
                # There already where an earlier watch ended between its export and its note.
                if not target.is_dir():
                    self.export(checkpoint, target)
            except (OSError, ValueError, RuntimeError):
                if checkpoint.is_dir() and incomplete(checkpoint) is None:
                    raise
                shutil.rmtree(target.with_name(f"{target.name}.partial"), ignore_errors=True)
                yield f"{checkpoint.name} was removed while it was exported"
                continue
            yield f"{checkpoint.name} is exported to {target}"
            if self.best is not None:
                yield from self._now_best(checkpoint)

    def ended(self) -> bool:
        """No checkpoint will follow: the run has its summary, or the last of its steps."""
        if self.run.summary.is_file():
            return True
        recipe = load_recipe(self.run.recipe).recipe
        last = recipe.rollout.steps - (1 if recipe.backend == "slime" else 0)
        return any(iteration_of(one) >= last for one in self._whole())

    def _due(self) -> list[Path]:
        """Checkpoints to export, oldest first; of those that are ranked the best alone."""
        whole = self._whole()
        if self.best is None:
            return [one for one in whole if not (self.out / one.name).is_dir()]
        recipe = load_recipe(self.run.recipe).recipe
        known = figures(recipe, self.run, self.best)
        ranked = [one for one in whole if iteration_of(one) in known]
        if not ranked:
            return []
        top = max(ranked, key=lambda one: (known[iteration_of(one)], -iteration_of(one)))
        kept = self._kept()
        if kept is not None and float(kept["value"]) >= known[iteration_of(top)]:
            return []
        return [top]

    def _whole(self) -> list[Path]:
        """Checkpoints that are complete; one being written comes with a later look."""
        return [one for one in checkpoints(self.run.checkpoints) if incomplete(one) is None]

    def _now_best(self, checkpoint: Path) -> Iterator[str]:
        """Note the new best, then remove the export of the one before."""
        before = self._kept()
        recipe = load_recipe(self.run.recipe).recipe
        value = figures(recipe, self.run, self.best)[iteration_of(checkpoint)]
        said = {"checkpoint": checkpoint.name, "metric": self.best, "value": value}
        self.run.write_json(self.out / BEST, said)
        yield f"{checkpoint.name} is the best so far: {self.best} = {value:.4g}"
        if before is not None and before["checkpoint"] != checkpoint.name:
            shutil.rmtree(self.out / str(before["checkpoint"]), ignore_errors=True)

    def _kept(self) -> dict[str, float | str] | None:
        path = self.out / BEST
        kept: dict[str, float | str] | None = (
            json.loads(path.read_text()) if path.is_file() else None
        )
        return kept if kept and (self.out / str(kept["checkpoint"])).is_dir() else None


def lowest_priority() -> None:
    """Let everything else on the machine go first, on its cores and on its disk."""
    import psutil

    os.nice(LOWEST)
    if hasattr(psutil, "IOPRIO_CLASS_IDLE"):
        psutil.Process().ionice(psutil.IOPRIO_CLASS_IDLE)
