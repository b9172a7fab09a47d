"""Whether config.json says what the base model's says, and says it to every reader.

One design choice: rotary settings are compared as numbers read by each reader's own rule, because
transformers 4, transformers 5 and SGLang read different keys and none complains of a missing one.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from slime_ext.weights.rope_config import RopeScaling, rope_from_config
from slime_ext.weights.shape import ModelShape

from .faults import Fault

CONFIG = "config.json"
DEFAULT_THETA = 10000.0
"""What transformers 4 takes where no `rope_theta` is given."""
_NEW_ONLY = {"qwen3_5"}
"""Models that transformers 4 does not know."""


def read_config(folder: Path) -> dict[str, Any]:
    """`config.json` parsed. Raises FileNotFoundError without one, ValueError for a damaged one."""
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError("is missing")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"is damaged ({error})") from None
    if not isinstance(config, dict):
        raise ValueError("is no table")
    return config


def text_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a config that describes the decoder."""
    return {**config, **(config.get("text_config") or {})}


def stated_dtype(config: Mapping[str, Any]) -> str | None:
    """The dtype of the weights in torch's words, as either transformers reads it."""
    text = text_config(config)
    stated = text.get("dtype") or text.get("torch_dtype")
    return str(stated).removeprefix("torch.") if stated else None


def rope_for_every_reader(config: Mapping[str, Any], shape: ModelShape) -> Iterator[Fault]:
    """The old keys (`rope_theta`, `rope_scaling`) and the new one (`rope_parameters`), where both
    are there, must agree; without the old ones transformers 4 takes another rotation."""
    text = text_config(config)
    new = text.get("rope_parameters")
    old_theta, old_scaling = text.get("rope_theta"), text.get("rope_scaling") or {}
    if shape.architecture in _NEW_ONLY and old_theta is None:
        return
    if old_theta is None and shape.rope_theta != DEFAULT_THETA:
        problem = "has no rope_theta: transformers 4 would take 10,000 in place of "
        yield Fault(CONFIG, problem + f"{shape.rope_theta:,.0f}")
    if new is None:
        return
    if old_theta is not None and float(new.get("rope_theta", old_theta)) != float(old_theta):
        problem = f"rope_theta is {old_theta:g}, rope_parameters says {new['rope_theta']:g}"
        yield Fault(CONFIG, problem)
    old = _rope(text | {"rope_parameters": None, "rope_theta": shape.rope_theta})
    now = _rope(text | {"rope_scaling": None, "rope_theta": shape.rope_theta})
    if old != now:
        problem = "rope_scaling and rope_parameters disagree: transformers 4 reads "
        yield Fault(CONFIG, problem + f"{dict(old_scaling)}, transformers 5 {dict(new)}")


def compare_shapes(
    shape: ModelShape, reference: ModelShape, scaling: RopeScaling | None = None
) -> Iterator[Fault]:
    """Every size and rotary setting that is not the base model's; `scaling` is what the recipe put
    in place of the base model's own."""
    sources = {}
    if scaling is not None:
        reference = dataclasses.replace(reference, rope_scaling=scaling)
        sources["rope_scaling"] = "the run trained with"
    for field in dataclasses.fields(ModelShape):
        here, there = getattr(shape, field.name), getattr(reference, field.name)
        if here != there:
            source = sources.get(field.name, "the base model has")
            yield Fault(CONFIG, f"says {field.name} = {here}; {source} {there}")


def _rope(text: Mapping[str, Any]) -> Any:
    """Scaling and rotated share as one reader sees them; the words where they are not known."""
    try:
        rope = rope_from_config(text, CONFIG)
    except ValueError as error:
        return str(error)
    return rope.scaling, rope.partial
