"""Where a (re)started job begins: the newest complete checkpoint, or the base model.

One design choice: completeness is judged from the files, not from the marker alone, and the marker
is then made to agree: slime follows it blindly, and without one starts over from the base model.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe

MARKER = "latest_checkpointed_iteration.txt"
_SHARD = re.compile(rb"__\d+_\d+\.distcp")


class NothingLeftError(ExplainedError):
    """Every rollout of the recipe is already in the newest checkpoint."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where the run goes on."""

    rollout: int
    """The first rollout to be generated, counted from 0."""
    steps: int
    checkpoint: Path | None
    skipped: list[str] = field(default_factory=list)
    """Newer checkpoints that are incomplete, each with the reason."""

    def describe(self) -> str:
        """One line for the log, and one for each checkpoint that was passed over."""
        where = f"checkpoint {self.checkpoint.name}" if self.checkpoint else "the base model"
        left = self.steps - self.rollout
        lines = [f"skipped an incomplete checkpoint: {one}" for one in self.skipped]
        return "\n".join([*lines, f"starts from {where}; {left} of {self.steps} rollouts remain"])


def prepare_start(recipe: Recipe, folder: RunFolder) -> Start:
    """Choose the checkpoint and point the marker at it.

    Raises NothingLeftError where no rollout is left to do.
    """
    chosen, skipped = newest_complete(folder.checkpoints)
    done = iteration_of(chosen) + 1 if chosen else 0
    start = Start(done, recipe.rollout.steps, chosen, skipped)
    if done >= recipe.rollout.steps:
        raise NothingLeftError(
            f"{folder.checkpoints} holds all of rollout.steps = {recipe.rollout.steps} rollouts, "
            "none remain. Raise rollout.steps to train on, or `longrl export` the checkpoint"
        )
    marker = folder.checkpoints / MARKER
    if chosen is None:
        marker.unlink(missing_ok=True)
    else:
        partial = marker.with_suffix(".partial")
        partial.write_text(str(iteration_of(chosen)))
        partial.replace(marker)
    return start


def newest_complete(root: Path) -> tuple[Path | None, list[str]]:
    """The newest complete checkpoint under `root`; the newer ones that are not, with reasons."""
    skipped: list[str] = []
    folders = [one for one in root.glob("iter_*") if one.name.removeprefix("iter_").isdigit()]
    for folder in sorted(folders, key=iteration_of, reverse=True):
        fault = incomplete(folder)
        if fault is None:
            return folder, skipped
        skipped.append(f"{folder.name}: {fault}")
    return None, skipped


def iteration_of(folder: Path) -> int:
    """Number in the name `iter_0000020`."""
    return int(folder.name.removeprefix("iter_"))


def incomplete(folder: Path) -> str | None:
    """What a torch_dist checkpoint lacks, None where it is whole.

    `.metadata` is written last and names every shard, so its text tells what must be there.
    """
    for name in (".metadata", "common.pt", "metadata.json"):
        if not _size(folder / name):
            return f"{name} is missing or empty"
    named = {match.decode() for match in _SHARD.findall((folder / ".metadata").read_bytes())}
    if not named:
        return ".metadata names no shard"
    lost = sorted(name for name in named if not _size(folder / name))
    if lost:
        return f"{len(lost)} of {len(named)} shards missing or empty, the first {lost[0]}"
    return None


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
