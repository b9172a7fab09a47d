"""`summary.json`: the figures a run is judged by, at its start and its end.

One design choice: everything is computed from the records of all attempts, so a resumed run has the
summary an uninterrupted one would have.
"""

from __future__ import annotations

from typing import Any

from slime_ext.metrics.records import last_rows, read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe

FIGURES = {
    "accuracy": "reward/outcome",
    "evidence_recall": "reward/evidence_recall",
    "format": "reward/format",
    "truncated_ratio": "truncated_share",
    "response_length": "length/mean",
}
"""Name in the summary, and the metric it is."""


def summarise(recipe: Recipe, folder: RunFolder) -> dict[str, Any]:
    """Start and end figures (held-out where the recipe evaluates, else of training), cost, seed.

    The cost is given where the records tell it: those of slime's trainer do not.
    """
    evals = list(_held_out(recipe, folder).values())
    rollouts = list(last_rows(folder.metrics / "rollout.jsonl").values())
    rows = evals or rollouts
    train = list(last_rows(folder.metrics / "train.jsonl").values())
    start, end = (
        {name: row[key] for name, key in FIGURES.items() if key in row}
        for row in ((rows[0], rows[-1]) if rows else ({}, {}))
    )
    cost = {
        key: sum(row[key] for row in train)
        for key in ("cpu_seconds", "wall_seconds")
        if train and all(key in row for row in train)
    }
    return {
        "name": recipe.name,
        "seed": recipe.seed,
        "reward": recipe.reward.kind,
        "steps": len(rollouts),
        "figures_from": "held-out" if evals else "training",
        "start": start,
        "end": end,
    } | cost


def _held_out(recipe: Recipe, folder: RunFolder) -> dict[int, dict[str, Any]]:
    """By step the last row of data.eval, or else of the first of data.eval_sets."""
    main = next(iter(recipe.data.eval_sets), None) if recipe.data.eval is None else "eval"
    rows = read_rows(folder.metrics / "eval.jsonl")
    return {int(row["step"]): row for row in rows if row.get("dataset") == main}
