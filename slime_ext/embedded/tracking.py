"""Weights & Biases for embedded runs: one run id for all attempts, one process that logs.

One design choice: the id is drawn once and kept in the run folder; the JSONL records stay the
record, wandb is a view of them.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator, Mapping

from slime_ext.host.loggers import set_sink
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.errors import RecipeError
from slime_ext.recipe.schema import Recipe


@contextlib.contextmanager
def tracked(recipe: Recipe, folder: RunFolder) -> Iterator[None]:
    """While the body runs, send what the hooks log to wandb, if the recipe asks for it.

    Raises RecipeError where the extra is not installed.
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
    run = wandb.init(
        project=recipe.track.project,
        group=recipe.track.group or recipe.name,
        name=recipe.name,
        id=_run_id(folder),
        resume="allow",
        mode=recipe.track.wandb,
        dir=str(folder.path),
        config=recipe.model_dump(mode="json"),
    )

    def sink(metrics: Mapping[str, float], step: int) -> None:
        run.log(dict(metrics), step=step)

    set_sink(sink)
    try:
        yield
    finally:
        set_sink(None)
        run.finish()


def _run_id(folder: RunFolder) -> str:
    path = folder.path / "wandb_id.json"
    if not path.is_file():
        folder.write_json(path, {"id": uuid.uuid4().hex[:8]})
    return str(json.loads(path.read_text())["id"])
