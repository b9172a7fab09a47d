"""Weights & Biases for embedded runs: one run id for all attempts, one process that logs.

One design choice: the JSONL records stay the record, wandb is a view of them: a step done again is
logged again under the same value of its axis, and nothing is lost that wandb would not take back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from slime_ext.host.loggers import set_sink
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.metrics.shown_config import shown_config
from slime_ext.metrics.wandb_run import define_axes, wandb_run_id
from slime_ext.recipe.errors import RecipeError
from slime_ext.recipe.schema import Recipe


@contextlib.contextmanager
def tracked(recipe: Recipe, folder: RunFolder) -> Iterator[None]:
    """While the body runs, send what the hooks log to wandb, if the recipe asks for it.

    Raises RecipeError where the extra is not installed or W&B cannot be used, RunIdError as
    `wandb_run_id`.
    """
    if recipe.track.wandb == "off":
        yield
        return
    try:
        import wandb
    except ModuleNotFoundError as error:
        raise RecipeError(
            f'track.wandb = "{recipe.track.wandb}" needs the extra: pip install "longrl[track]"'
        ) from error
    try:
        run = wandb.init(
            project=recipe.track.project,
            group=recipe.track.group or recipe.name,
            name=recipe.name,
            entity=recipe.track.team,
            id=wandb_run_id(folder.path),
            resume="allow",
            mode=recipe.track.wandb,
            dir=str(folder.path),
            config=shown_config(recipe),
            settings=wandb.Settings(base_url=recipe.track.host) if recipe.track.host else None,
        )
    except wandb.errors.Error as error:
        raise RecipeError(
            f"W&B cannot be used: {error}\nstart with --set track.wandb=offline, and send the "
            f"records later: longrl sync {folder.path}"
        ) from error
    define_axes(run)
    set_sink(lambda metrics: run.log(dict(metrics)))
    try:
        yield
    finally:
        set_sink(None)
        run.finish()
