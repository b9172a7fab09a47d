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
    """Start and end figures (held-out where the recipe evaluates, else of training), cost, seed."""
    evals = list(_held_out(recipe, folder).values())
    rows = evals or list(last_rows(folder.metrics / "rollout.jsonl").values())
    train = list(last_rows(folder.metrics / "train.jsonl").values())
    start, end = (
        {name: row[key] for name, key in FIGURES.items() if key in row}
        for row in (rows[0], rows[-1])
    )
    return {
        "name": recipe.name,
        "seed": recipe.seed,
        "reward": recipe.reward.kind,
        "steps": len(train),
        "figures_from": "held-out" if evals else "training",
        "cpu_seconds": sum(row["cpu_seconds"] for row in train),
        "wall_seconds": sum(row["wall_seconds"] for row in train),
        "start": start,
        "end": end,
    }


def _held_out(recipe: Recipe, folder: RunFolder) -> dict[int, dict[str, Any]]:
    """By step the last row of data.eval, or else of the first of data.eval_sets."""
    main = next(iter(recipe.data.eval_sets), None) if recipe.data.eval is None else "eval"
    rows = read_rows(folder.metrics / "eval.jsonl")
    return {int(row["step"]): row for row in rows if row.get("dataset") == main}
