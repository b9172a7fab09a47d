"""How a response comes about: the kinds of rollout a recipe can name.

One design choice: a kind says of itself whether one rollout may become several samples (fan-out),
so that a host that cannot train on them is refused before anything is sampled.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from slime_ext.errors import nearest
from slime_ext.host.features import require_fan_out
from slime_ext.host.types import Sample
from slime_ext.recipe.errors import RecipeError
from slime_ext.rollout.runtime import Runtime
from slime_ext.rollout.single_turn import single_turn

Generate = Callable[
    [Runtime, Any, Sample, dict[str, Any], bool], Awaitable["Sample | list[Sample]"]
]
"""Arguments: runtime, the host's args, the sample to fill, sampling parameters, evaluation."""


@dataclass(frozen=True, slots=True)
class RolloutKind:
    """One kind. With `fan_out`, `generate` may return a list; its samples share `rollout_id`."""

    generate: Generate
    fan_out: bool = False


KINDS: dict[str, RolloutKind] = {"single_turn": RolloutKind(single_turn)}


def kind_of(runtime: Runtime) -> RolloutKind:
    """The kind the recipe names, registered or at the import path "package.module:NAME".

    Raises RecipeError where there is none, UnsupportedHostError where this slime cannot run it.
    """
    name = runtime.recipe.rollout.kind
    kind = KINDS.get(name) or _imported(name)
    if kind.fan_out:
        require_fan_out(name)
    return kind


def _imported(name: str) -> RolloutKind:
    module, colon, attribute = name.partition(":")
    if not colon:
        raise RecipeError(
            f'unknown rollout.kind = {name!r}; {nearest(name, KINDS)} (or your own "package.'
            'module:NAME")'
        )
    try:
        kind = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise RecipeError(
            f"rollout.kind = {name!r}: there is no module {error.name!r}; install it or put its "
            "folder on PYTHONPATH"
        ) from None
    if not isinstance(kind, RolloutKind):
        raise RecipeError(
            f"rollout.kind = {name!r} is no RolloutKind; write `{attribute or 'NAME'} = "
            f"RolloutKind(generate, fan_out=...)` in {module}"
        )
    return kind
