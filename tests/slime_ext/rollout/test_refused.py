"""Flags and recipes that contradict each other are refused where the data source is made."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from slime_ext.recipe.errors import RecipeError
from slime_ext.rollout.data_source import RecipeDataSource
from slime_ext.rollout.kinds import RolloutKind
from slime_ext.rollout.runtime import Runtime
from tests.fakes.group_reward import RANKED

WHOLE = f'reward.kind="{RANKED}"'
FAN_OUT = "rollout.kind=my_fan_out:EPISODES"
OURS = "slime_ext.hooks.evaluate"


async def never(*_: Any) -> Any:
    raise AssertionError


@pytest.fixture(autouse=True)
def my_fan_out(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("my_fan_out")
    module.EPISODES = RolloutKind(never, fan_out=True)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_fan_out", module)


def flags(runtime: Runtime, **more: Any) -> Namespace:
    return Namespace(longrl_recipe=str(runtime.folder / "recipe.toml"), save=None, **more)


@pytest.mark.parametrize(
    ("settings", "given", "says"),
    [
        ((FAN_OUT,), {"group_rm": True}, "leave out --group-rm"),
        ((FAN_OUT, WHOLE), {"group_rm": True}, "choose another reward.kind"),
        ((FAN_OUT, WHOLE), {}, "choose another reward.kind"),
        ((WHOLE,), {"group_rm": False}, f"add --group-rm and --eval-function-path {OURS}"),
        (
            (WHOLE,),
            {
                "group_rm": True,
                "eval_interval": 5,
                "eval_function_path": "slime.rollout",
                "rollout_function_path": "slime.rollout",
            },
            f"add --eval-function-path {OURS}",
        ),
    ],
    ids=["fan-out", "both", "embedded", "no group-rm", "slime's evaluation"],
)
def test_what_does_not_go_together_is_refused_with_the_remedy(
    lab_runtime: Callable[..., Runtime], settings: tuple[str, ...], given: Any, says: str
) -> None:
    runtime = lab_runtime(*settings)
    with pytest.raises(RecipeError, match=re.escape(says)):
        RecipeDataSource(flags(runtime, **given))


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ((), {"group_rm": True}),
        ((), {"group_rm": False}),
        ((FAN_OUT,), {"group_rm": False}),
        ((WHOLE,), {}),
        (
            (WHOLE,),
            {
                "group_rm": True,
                "eval_interval": 5,
                "eval_function_path": OURS,
                "rollout_function_path": "slime.rollout",
            },
        ),
    ],
)
def test_what_goes_together_passes(
    lab_runtime: Callable[..., Runtime], settings: tuple[str, ...], given: Any
) -> None:
    RecipeDataSource(flags(lab_runtime(*settings), **given))
