"""Where a (re)started job begins: the newest complete checkpoint, or the base model.

One design choice: completeness is judged from the files, not from the marker alone, and the marker
is then made to agree: slime follows it blindly, and without one starts over from the base model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.positions import Positions
from slime_ext.weights.checkpoints import MARKER, checkpoints, incomplete, iteration_of


class NothingLeftError(ExplainedError):
    """Every rollout of the recipe is already in the newest checkpoint."""


class NoPositionError(ExplainedError):
    """There are whole checkpoints, and for none of them is the next prompt known."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where the run goes on."""

    rollout: int
    """The first rollout to be generated, counted from 0."""
    steps: int
    checkpoint: Path | None
    skipped: list[str] = field(default_factory=list)
    """Newer checkpoints that cannot be gone on from, each with the reason."""
    marker: str | None = None
    """What the marker said, where it was wrong."""

    def describe(self) -> str:
        """One line for the log, and one for each checkpoint that was passed over."""
        where = f"checkpoint {self.checkpoint.name}" if self.checkpoint else "the base model"
        left = self.steps - self.rollout
        lines = [f"skipped checkpoint {one}" for one in self.skipped]
        if self.marker is not None:
            lines.append(f"{MARKER} said {self.marker!r} and was put right")
        return "\n".join([*lines, f"starts from {where}; {left} of {self.steps} rollouts remain"])


def prepare_start(recipe: Recipe, folder: RunFolder) -> Start:
    """Choose the checkpoint and point the marker at it.

    Raises NothingLeftError where no rollout is left to do, NoPositionError where starting over
    would throw away whole checkpoints.
    """
    root = folder.checkpoints
    chosen, skipped = newest_resumable(root)
    if chosen is None and (whole := [one for one in checkpoints(root) if not incomplete(one)]):
        raise NoPositionError(
            f"{root} holds {len(whole)} complete checkpoints, the newest {whole[-1].name}, but "
            f"{Positions(root).file(iteration_of(whole[-1]))} is missing, so the next prompt is "
            "unknown. Bring the file back, or start over with --fresh"
        )
    done = iteration_of(chosen) + 1 if chosen else 0
    if done >= recipe.rollout.steps:
        raise NothingLeftError(
            f"{root} holds all of rollout.steps = {recipe.rollout.steps} rollouts, "
            "none remain. Raise rollout.steps to train on, or `longrl export` the checkpoint"
        )
    return Start(done, recipe.rollout.steps, chosen, skipped, _put_right(root / MARKER, chosen))


def _put_right(marker: Path, chosen: Path | None) -> str | None:
    """Let `marker` name `chosen`; what it said before, where that was wrong."""
    said = marker.read_text(errors="replace").strip() if marker.is_file() else None
    right = None if chosen is None else str(iteration_of(chosen))
    if said == right:
        return None
    if right is None:
        marker.unlink()
    else:
        partial = marker.with_suffix(".partial")
        partial.write_text(right)
        partial.replace(marker)
    return said if said is not None else "nothing"


def newest_resumable(root: Path) -> tuple[Path | None, list[str]]:
    """The newest checkpoint under `root` to go on from; the newer ones that are not, with reasons.

    It must be complete, and the position in the data after its rollout must be known.
    """
    skipped: list[str] = []
    for folder in reversed(checkpoints(root)):
        fault = incomplete(folder)
        position = Positions(root).file(iteration_of(folder))
        if fault is None and not position.is_file():
            fault = f"{position} is missing, so the next prompt is unknown"
        if fault is None:
            return folder, skipped
        skipped.append(f"{folder.name}: {fault}")
    return None, skipped
