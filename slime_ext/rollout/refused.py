"""Recipes and flags that do not go together, refused before anything is sampled.

One design choice: asked by the data source, the first of ours that a host makes; slime itself would
fail in the middle of a step, with an AttributeError, or score responses one by one in silence.
"""

from __future__ import annotations

from typing import Any

from slime_ext.recipe.errors import RecipeError
from slime_ext.rollout.kinds import own_kind
from slime_ext.rollout.runtime import Runtime

OUR_EVALUATION = "slime_ext.hooks.evaluate"


def refuse_mismatch(args: Any, runtime: Runtime) -> None:
    """Raise RecipeError where the recipe, or the host's flags in `args`, contradict each other;
    UnsupportedHostError where this slime cannot run the recipe.

    Arguments without `group_rm` are the embedded loop's, which sees to whole groups by itself.
    """
    recipe = runtime.recipe
    kind, whole = own_kind(runtime), runtime.reward.scores_groups()
    group_rm = getattr(args, "group_rm", None)
    fan_out = kind is not None and kind.fan_out
    if fan_out and (whole or group_rm):
        asker = f"reward.kind = {recipe.reward.kind!r}" if whole else "--group-rm"
        remedy = "choose another reward.kind" if whole else "leave out --group-rm"
        raise RecipeError(
            f"rollout.kind = {recipe.rollout.kind!r} makes several samples of one rollout, and "
            f"{asker} wants one response of each; {remedy}, or set "
            'rollout.kind = "single_turn"'
        )
    if whole and group_rm is False:
        raise RecipeError(
            f"reward.kind = {recipe.reward.kind!r} scores whole groups, and slime hands out single "
            f"responses; add --group-rm and --eval-function-path {OUR_EVALUATION}"
        )
    if group_rm and _slime_evaluates(args):
        raise RecipeError(
            "slime's own evaluation does not run with --group-rm; add "
            f"--eval-function-path {OUR_EVALUATION}, or leave out --eval-interval"
        )


def _slime_evaluates(args: Any) -> bool:
    """Without --eval-function-path slime evaluates by its rollout function."""
    own = getattr(args, "eval_function_path", None)
    theirs = getattr(args, "rollout_function_path", None)
    return getattr(args, "eval_interval", None) is not None and own == theirs
