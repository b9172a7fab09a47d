"""The shape of a recipe's model, from its folder or from the facts that ship with the project.

One design choice: a `config.json` always wins, because it is what trainer and engines will load;
the shipped facts (`configs/models/NAME.json`) stand in where no folder is at hand, and where both
are there they must say the same.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slime_ext.errors import ExplainedError, nearest
from slime_ext.recipe.places import configs_folder
from slime_ext.recipe.schema import ModelSection, Recipe
from slime_ext.weights.rope_config import scaling_from_config
from slime_ext.weights.shape import ModelShape, read_shape, shape_from_config

_BUILTIN = "builtin:"
_BUILTIN_FACTS = {"smollm2": "SmolLM2-135M-Instruct"}
"""Built-in models that are made from a download; the others ship with the package."""
_NOT_COMPARED = {"dual_chunk"}
"""The publisher has changed it within one model; Megatron builds the same with and without."""


class ModelFactsError(ExplainedError, ValueError):
    """A model whose shape is unknown, or stated in two ways."""


def known_models() -> list[str]:
    """Names of the models whose facts ship, sorted."""
    return sorted(path.stem for path in _folder().glob("*.json"))


def facts_file(name: str) -> Path:
    """The file of the facts called `name`. Raises ModelFactsError for an unknown name."""
    path = _folder() / f"{name}.json"
    if name not in known_models():
        raise ModelFactsError(
            f"model.facts = {name!r} is not known; {nearest(name, known_models())}"
        )
    return path


def facts_shape(name: str) -> ModelShape:
    """The shape that the facts called `name` state. Raises ModelFactsError for an unknown name."""
    path = facts_file(name)
    return shape_from_config(_read(path)["config"], where=str(path))


def stop_tokens(model: ModelSection) -> list[int]:
    """Tokens that end a response: the recipe's, else the folder's `generation_config.json` or
    `config.json`, else the facts'; empty where nobody says."""
    if model.stop_token_ids:
        return model.stop_token_ids
    for name in ("generation_config.json", "config.json"):
        file = Path(model.path) / name
        ids = _read(file).get("eos_token_id") if file.is_file() else None
        if ids is not None:
            return list(ids) if isinstance(ids, list) else [int(ids)]
    return list(_read(facts_file(model.facts))["stop_token_ids"]) if model.facts else []


def shape_for(recipe: Recipe) -> ModelShape:
    """The shape of the recipe's policy, with `model.rope_scaling` put in place of its own.

    Raises ModelFactsError where neither folder nor facts are there, a folder has no `config.json`,
    its config cannot be read, or config and facts differ.
    """
    model = recipe.model
    try:
        shape = _stated_shape(model)
        if model.rope_scaling is None:
            return shape
        scaling = scaling_from_config(model.rope_scaling, "model.rope_scaling")
    except ModelFactsError:
        raise
    except (ValueError, FileNotFoundError) as error:
        raise ModelFactsError(str(error)) from error
    return dataclasses.replace(shape, rope_scaling=scaling)


def differences(config: ModelShape, facts: ModelShape) -> Iterator[str]:
    """`NAME: config.json says A, the facts say B` for every size that is not the same."""
    for field in dataclasses.fields(ModelShape):
        here, there = getattr(config, field.name), getattr(facts, field.name)
        if here != there and field.name not in _NOT_COMPARED:
            yield f"{field.name}: config.json says {here}, the facts say {there}"


def _stated_shape(model: ModelSection) -> ModelShape:
    facts = facts_shape(model.facts) if model.facts else None
    if model.path.startswith(_BUILTIN):
        return _builtin_shape(model.path.removeprefix(_BUILTIN))
    folder = Path(model.path)
    if not folder.is_dir():
        if facts is None:
            raise ModelFactsError(
                f"model.path = {model.path!r} is not here and model.facts is not set; type "
                f"`longrl prepare RECIPE`, or set model.facts to one of {', '.join(known_models())}"
            )
        return facts
    if not (folder / "config.json").is_file():
        wanted = f"the folder of {model.facts}" if facts else "a Hugging Face model folder"
        raise ModelFactsError(
            f"model.path = {model.path!r} holds no config.json; name {wanted}, or type "
            "`longrl prepare RECIPE`"
        )
    shape = read_shape(folder)
    wrong = list(differences(shape, facts)) if facts else []
    if model.rope_scaling is not None:
        wrong = [line for line in wrong if not line.startswith("rope_scaling:")]
    if wrong:
        raise ModelFactsError(
            f"{folder / 'config.json'} is not {model.facts}: {'; '.join(wrong)}; name the right "
            "folder in model.path, or take model.facts out if the change is meant"
        )
    return shape


def _builtin_shape(name: str) -> ModelShape:
    if name in _BUILTIN_FACTS:
        return facts_shape(_BUILTIN_FACTS[name])
    from slime_ext.embedded.lab.start import builtin_model

    return read_shape(builtin_model(name))


def _folder() -> Path:
    return configs_folder() / "models"


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
