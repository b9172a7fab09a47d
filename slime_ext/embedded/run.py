"""`longrl train` on one machine: from a recipe to a finished run folder.

One design choice: everything that can be wrong with recipe, folder and data is found before the
trainer and the engine are started.
"""

from __future__ import annotations

import os
from pathlib import Path

from slime_ext.embedded.builtin import resolve, write_data
from slime_ext.embedded.console import show_summary
from slime_ext.embedded.stopping import stop_on_signals
from slime_ext.embedded.tracking import tracked
from slime_ext.metrics.records import ATTEMPT_VARIABLE
from slime_ext.metrics.run_folder import RunFolder, open_run, write_recipe
from slime_ext.metrics.stop_flag import exit_code
from slime_ext.metrics.summary import summarise
from slime_ext.recipe.errors import RecipeError
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.runtime import load_runtime
from slime_ext.rollout.usable import refuse_or_skip


def train(asked: Recipe, root: Path, fresh: bool) -> int:
    """Run or resume `asked` under `root`; returns the exit code (0 finished, 75 stopped, 76 by
    an alarm).

    Raises RecipeError, RunFolderError or DataError, each saying what to type instead.
    """
    _require_one_process(asked)
    recipe = resolve(asked, root / asked.name)
    folder, attempt = open_run(root, recipe, fresh)
    os.environ[ATTEMPT_VARIABLE] = str(attempt)
    write_data(asked, recipe)
    write_recipe(folder, recipe)
    refuse_or_skip(load_runtime(folder.recipe))
    from slime_ext.embedded.loop import Loop  # torch and Megatron: seconds to import

    with tracked(recipe, folder), stop_on_signals() as stop:
        ended = Loop(recipe, folder, attempt).run(stop)
    if not ended.finished:
        print(f"stopped at step {ended.step}: {stop.reason}; the same command goes on from there")
        return exit_code(stop.reason)
    return _finish(recipe, folder)


def _require_one_process(recipe: Recipe) -> None:
    if recipe.backend == "slime":
        raise RecipeError(
            'backend = "slime" is the cluster\'s; type `longrl train RECIPE --backend slime`, or '
            "--backend embedded for this machine"
        )
    sizes = recipe.parallel.model_dump(include={"tp", "pp", "cp", "ep", "etp", "dp"})
    cut = {name: size for name, size in sizes.items() if size is not None and size > 1}
    if cut:
        stated = ", ".join(f"parallel.{name} = {size}" for name, size in cut.items())
        raise RecipeError(
            f'{stated}: the embedded trainer runs in one process; write 1, or set backend = "slime"'
        )


def _finish(recipe: Recipe, folder: RunFolder) -> int:
    summary = summarise(recipe, folder)
    folder.write_json(folder.summary, summary)
    show_summary(summary, folder.path)
    return 0
