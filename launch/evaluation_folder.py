"""The folder of one evaluation: `runs/NAME/evaluations/N`.

One design choice: it looks like a run's folder and is never one, so that evaluating a run, while it
trains or years later, touches none of the run's records; two evaluations never share a row.
"""

from __future__ import annotations

from pathlib import Path

from launch.argument_groups.sampling import held_out
from slime_ext.embedded.builtin import resolve, write_data
from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder, write_recipe
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.runtime import load_runtime
from slime_ext.rollout.usable import refuse_or_skip


def require_held_out(recipe: Recipe) -> None:
    """Raise ExplainedError where the recipe names no held-out rows."""
    if not held_out(recipe):
        raise ExplainedError(
            f"the recipe {recipe.name!r} names no held-out rows; add --set data.eval=ROWS.jsonl, "
            'or several by name: --set data.eval_sets.musique="musique.jsonl"'
        )


def prepare(asked: Recipe, runs: Path) -> RunFolder:
    """Make the folder, with the resolved recipe and the report on the held-out rows in it.

    Raises RecipeError or DataError where the model or a row cannot be used.
    """
    folder = _new_folder(runs.resolve() / asked.name / "evaluations")
    recipe = resolve(asked, folder.path)
    write_data(asked, recipe)
    write_recipe(folder, recipe)
    runtime = load_runtime(folder.recipe)
    refuse_or_skip(runtime, runtime.eval_splits)
    return folder


def _new_folder(parent: Path) -> RunFolder:
    parent.mkdir(parents=True, exist_ok=True)
    number = max((int(p.name) for p in parent.iterdir() if p.name.isdigit()), default=0)
    while True:
        number += 1
        try:
            (parent / str(number)).mkdir()
        except FileExistsError:
            continue
        return RunFolder(parent / str(number))
