"""Which checkpoints of a run stay on disk.

    python -m launch.job.prune RUN

One design choice: what is removed is first renamed, so that a removal cut short leaves no folder
that looks like a checkpoint. The newest complete checkpoint, the one the marker names and whatever
is newer, which may be under way, are never touched.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

from launch.job.best import better_one, keep_as_best
from slime_ext.metrics.records import Records
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.checkpoints import MARKER, checkpoints, incomplete, iteration_of
from slime_ext.weights.torch_dist import BrokenIndexError

REMOVED = ".removed-"


@dataclass
class Pruned:
    """What one look did."""

    removed: list[str] = field(default_factory=list)
    best: str | None = None
    """The checkpoint that is the best from now on."""
    value: float | None = None
    trouble: str | None = None
    """Why the best could not be copied; it stays whole until it can."""


def prune(recipe: Recipe, folder: RunFolder) -> Pruned:
    """Keep the best as weights and the newest `checkpoint.keep` whole; remove the others.

    Raises OSError where something cannot be removed.
    """
    done, root = Pruned(), folder.checkpoints
    for left in root.glob(f"{REMOVED}*"):
        shutil.rmtree(left)
    complete = [one for one in checkpoints(root) if incomplete(one) is None]
    if not complete:
        return done
    held = {one.name for one in complete[-recipe.checkpoint.keep :]} | {_marked(root)}
    best = better_one(recipe, folder, complete) if recipe.checkpoint.keep_best else None
    if best is not None:
        try:
            done.value = keep_as_best(recipe, folder, best)
            done.best = best.name
        except (OSError, BrokenIndexError) as error:
            done.trouble = f"{best.name} could not be kept as the best: {error}"
            held.add(best.name)
    for one in checkpoints(root):
        if one.name not in held and iteration_of(one) < iteration_of(complete[-1]):
            _remove(one)
            done.removed.append(one.name)
    return done


def _marked(root: Path) -> str:
    marker = root / MARKER
    text = marker.read_text(errors="replace").strip() if marker.is_file() else ""
    return f"iter_{int(text):07d}" if text.isdecimal() else ""


def _remove(checkpoint: Path) -> None:
    hidden = checkpoint.with_name(REMOVED + checkpoint.name)
    checkpoint.rename(hidden)
    shutil.rmtree(hidden)


def main() -> int:
    """Prune one run; what was done goes to its events, trouble to stderr with exit code 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    folder = RunFolder(parser.parse_args().run)
    try:
        done = prune(load_recipe(folder.recipe).recipe, folder)
        events = Records(folder.path)
        if done.removed:
            events.event("pruned", removed=done.removed)
        if done.best:
            events.event("best", checkpoint=done.best, value=done.value)
    except OSError as error:
        done = Pruned(trouble=str(error))
    if done.trouble:
        print(f"longrl: {done.trouble}", file=sys.stderr)
    return 1 if done.trouble else 0


if __name__ == "__main__":
    sys.exit(main())
