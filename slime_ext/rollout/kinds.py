"""Rollouts of a user's own in place of the single turn, named by the recipe.

One design choice: a kind says of itself whether one rollout may become several samples (fan-out),
so that a host that cannot train on them is refused before anything is sampled.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from slime_ext.host.features import require_fan_out
from slime_ext.host.types import Sample
from slime_ext.recipe.errors import RecipeError
from slime_ext.rollout.runtime import Runtime

SINGLE_TURN = "single_turn"
"""The kind that is built in."""

Generate = Callable[
    [Runtime, Any, Sample, dict[str, Any], bool], Awaitable["Sample | list[Sample]"]
]
"""Arguments: runtime, the host's args, the sample to fill, sampling parameters, evaluation."""


@dataclass(frozen=True, slots=True)
class RolloutKind:
    """One kind. With `fan_out`, `generate` may return a list; its samples share `rollout_id`."""

    generate: Generate
    fan_out: bool = False


def own_kind(runtime: Runtime) -> RolloutKind | None:
    """The kind at the import path "package.module:NAME" that the recipe names; None for the single
    turn.

    Raises RecipeError where there is none, UnsupportedHostError where this slime cannot run it.
    """
    name = runtime.recipe.rollout.kind
    kind = kind_named(name)
    if kind is not None and kind.fan_out:
        require_fan_out(name)
    return kind


def kind_named(name: str) -> RolloutKind | None:
    """The kind called `name`, for any host; None for the single turn. Raises RecipeError."""
    return None if name == SINGLE_TURN else _imported(name)


def undeclared_fan_out(runtime: Runtime) -> RecipeError:
    """The error of a kind that returned a list and had not said that it would."""
    return RecipeError(
        f"rollout.kind = {runtime.recipe.rollout.kind!r} returned a list of samples; write "
        "RolloutKind(generate, fan_out=True), so that a host that cannot train on them is refused"
    )


def _imported(name: str) -> RolloutKind:
    module, colon, attribute = name.partition(":")
    if not colon:
        raise RecipeError(
            f'unknown rollout.kind = {name!r}; write "{SINGLE_TURN}", or "package.module:NAME" '
            "of your own"
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
