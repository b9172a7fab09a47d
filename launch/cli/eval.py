"""`longrl eval`: the figures of a model on the held-out rows of a recipe, without training.

One design choice: a backend fills the evaluation's folder with records and nothing else; the table
is made from the records, so every backend is read the same way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from launch.argument_groups.sampling import held_out
from launch.cli.options import Overrides, RecipePath
from slime_ext.errors import ExplainedError
from slime_ext.metrics.records import read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe

Backend = Literal["slime"]
ABOUT_THE_ROW = ("step", "attempt", "time", "again", "dataset")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the person typed, but for the backend."""

    recipe: Recipe
    checkpoint: Path | None
    engines: str
    runs: Path
    step: int


def evaluate(
    recipe: RecipePath,
    overrides: Overrides = (),
    backend: Backend = "slime",
    checkpoint: Path | None = None,
    engines: str = "",
    runs: Path = Path("runs"),
    step: int = 0,
) -> int:
    """Evaluate a model on the held-out rows of a recipe.

    Exit code 1 where a data set has no figures.

    Args:
        recipe: The recipe.
        overrides: Changes of single keys.
        backend: slime: its rollout manager and SGLang engines, without a trainer.
        checkpoint: Hugging Face folder to evaluate in place of model.path.
        engines: Addresses URL,URL of running engines; without them slime starts its own.
        runs: Folder that holds the run folders.
        step: Step under which the metrics are logged.
    """
    changes = [*overrides]
    if checkpoint is not None:
        changes.append(f"model.path={json.dumps(str(checkpoint))}")
    loaded = load_recipe(recipe, changes).recipe
    folder, code = BACKENDS[backend](Asked(loaded, checkpoint, engines, runs, step))
    rows = read_rows(folder.path / "metrics" / "eval.jsonl")
    if rows:
        Console().print(metrics_table(rows))
    missing = without_figures(load_recipe(folder.recipe).recipe, rows)
    for line in missing:
        print(line)
    print(f"records: {folder.path}")
    return code or int(bool(missing))


def metrics_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Every metric of the evaluation, one column a data set."""
    table = Table("metric")
    for row in rows:
        table.add_column(str(row["dataset"]), justify="right")
    keys = dict.fromkeys(key for row in rows for key in row if key not in ABOUT_THE_ROW)
    for key in keys:
        table.add_row(key, *("-" if key not in row else f"{row[key]:.4g}" for row in rows))
    return table


def without_figures(recipe: Recipe, rows: Sequence[dict[str, Any]]) -> list[str]:
    """One line for each data set that was not evaluated or lost every response."""
    named = list(held_out(recipe))
    found = {row["dataset"]: row for row in rows}
    lines = [f"{name}: not evaluated" for name in named if name not in found]
    return lines + [
        f"{name}: every response was lost to the engine"
        for name in named
        if found.get(name, {}).get("lost_share") == 1.0
    ]


def _slime(asked: Asked) -> tuple[RunFolder, int]:
    from launch.engines import other_models, parse_engines, served_models
    from launch.evaluation_folder import prepare, require_held_out
    from launch.slime_evaluation import evaluate_with_slime, require_slime_here
    from slime_ext.embedded.builtin import resolve

    require_held_out(asked.recipe)
    require_slime_here(asked.recipe)
    engines = parse_engines(asked.engines)
    served = served_models(engines)
    model = Path(resolve(asked.recipe, asked.runs / asked.recipe.name).model.path)
    others = other_models(served, model)
    if others and asked.checkpoint is not None:
        raise ExplainedError("\n".join(others) + "\nserve it there, or leave out --checkpoint")
    for line in others:
        print(f"{line}; the figures are those of what it serves")
    folder = prepare(asked.recipe, asked.runs)
    return folder, evaluate_with_slime(folder, engines, asked.step)


BACKENDS: dict[Backend, Callable[[Asked], tuple[RunFolder, int]]] = {"slime": _slime}
