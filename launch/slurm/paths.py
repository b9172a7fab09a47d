"""Paths of a recipe as every node finds them.

One design choice: they are made absolute and `hub:` names resolved on the submitting side, because
a step in a container starts in a folder of the image, where a relative path means something else.
"""

from __future__ import annotations

from pathlib import Path

from launch.argument_groups.words import absolute
from slime_ext.data.hub.names import is_hub, parse_hub
from slime_ext.data.hub.stored import prepared_file
from slime_ext.recipe.schema import Recipe


def on_nodes(recipe: Recipe, run: Path) -> Recipe:
    """`recipe`, run in the folder `run`, with absolute paths.

    Raises DataError for a published set that is not prepared, RecipeError for an unknown builtin.
    """
    if made_here(recipe):
        from slime_ext.embedded.builtin import resolve  # torch: seconds to import

        recipe = resolve(recipe, run)
    model, data, judge = recipe.model, recipe.data, recipe.outcome.judge
    start = model.megatron_checkpoint
    paths = {"path": absolute(model.path), "megatron_checkpoint": start and absolute(start)}
    files = {
        "train": _file(data.train, data.format),
        "eval": data.eval and _file(data.eval, data.format),
        "eval_sets": {name: _file(file, data.format) for name, file in data.eval_sets.items()},
    }
    cache = {"cache": judge.cache and judge.cache.absolute()}
    outcome = {"judge": judge.model_copy(update=cache)}
    keys = recipe.cluster.secrets_file
    cluster = {"secrets_file": keys and str(Path(keys).expanduser().absolute())}
    return recipe.model_copy(
        update={
            "model": model.model_copy(update=paths),
            "data": data.model_copy(update=files),
            "outcome": recipe.outcome.model_copy(update=outcome),
            "cluster": recipe.cluster.model_copy(update=cluster),
        }
    )


def made_here(recipe: Recipe) -> bool:
    """Whether the recipe names `builtin:` data, which are made in the run folder."""
    data = recipe.data
    names = [data.train, data.eval or "", *data.eval_sets.values()]
    return any(name.startswith("builtin:") for name in names)


def _file(name: str, format: str) -> str:
    if is_hub(name):
        return str(prepared_file(parse_hub(name), format).absolute())
    return absolute(name)
