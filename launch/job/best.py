"""The best checkpoint of a run by its evaluations, kept as weights alone.

One design choice: only a checkpoint that was itself evaluated can be the best; none inherits the
figure of a neighbour. It is copied as soon as it is known, into `checkpoints/best/`, which has the
form of a checkpoint folder, so that it can be exported or loaded like any other.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from slime_ext.metrics.evaluated import figures
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.checkpoints import MARKER, iteration_of
from slime_ext.weights.hf_folder import replace_folder
from slime_ext.weights.torch_dist import copy_weights

FOLDER = "best"
FIGURE = "best.json"


def better_one(recipe: Recipe, folder: RunFolder, complete: list[Path]) -> Path | None:
    """The checkpoint to be kept as the best; None where what is kept is at least as good."""
    known = figures(recipe, folder)
    evaluated = [one for one in complete if iteration_of(one) in known]
    if not evaluated:
        return None
    top = max(evaluated, key=lambda one: (known[iteration_of(one)], -iteration_of(one)))
    kept = folder.checkpoints / FOLDER / FIGURE
    if kept.is_file() and json.loads(kept.read_text())["value"] >= known[iteration_of(top)]:
        return None
    return top


def keep_as_best(recipe: Recipe, folder: RunFolder, checkpoint: Path) -> float:
    """Copy the weights of `checkpoint` to `checkpoints/best/`, then remove the one before; its
    figure. Raises OSError or BrokenIndexError; what was kept before is untouched then."""
    root = folder.checkpoints / FOLDER
    partial = root / f".{checkpoint.name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        copy_weights(checkpoint, partial)
        replace_folder(partial, root / checkpoint.name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    iteration = iteration_of(checkpoint)
    value = figures(recipe, folder)[iteration]
    (root / MARKER).write_text(str(iteration))
    said = {"iteration": iteration, "metric": recipe.checkpoint.best, "value": value}
    folder.write_json(root / FIGURE, said)
    for other in root.glob("iter_*"):
        if other.name != checkpoint.name:
            shutil.rmtree(other)
    return value
