"""The figure by which checkpoints of a run are compared.

One design choice: a figure belongs to the iteration that was evaluated; no checkpoint inherits that
of a neighbour.
"""

from __future__ import annotations

from slime_ext.metrics.records import read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe


def figures(recipe: Recipe, folder: RunFolder, metric: str | None = None) -> dict[int, float]:
    """`metric` (None: `checkpoint.best`) of the first held-out set, by the iteration evaluated.

    slime evaluates rollout N after its update, which is iteration N, and the base model as 0; the
    embedded loop evaluates iteration N before step N.
    """
    name = recipe.checkpoint.best if metric is None else metric
    first = next(iter(recipe.data.eval_sets), None) if recipe.data.eval is None else "eval"
    rows = [
        row
        for row in read_rows(folder.metrics / "eval.jsonl")
        if row.get("dataset") == first and isinstance(row.get(name), int | float)
    ]
    found = {int(row["step"]): float(row[name]) for row in rows}
    if recipe.eval.every > 1:
        found.pop(0, None)
    return found
