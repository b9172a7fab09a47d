"""Kinds of rollout: looked up, imported, and refused where the host cannot fan out."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from slime_ext import hooks
from slime_ext.embedded.loop import to_updates
from slime_ext.embedded.rollouts import Rollouts
from slime_ext.host import features
from slime_ext.host.features import UnsupportedHostError
from slime_ext.host.types import Sample
from slime_ext.recipe.errors import RecipeError
from slime_ext.rollout.data_source import RecipeDataSource
from slime_ext.rollout.kinds import RolloutKind, own_kind
from slime_ext.rollout.runtime import Runtime


async def twice(
    runtime: Runtime, args: Any, sample: Sample, sampling: dict[str, Any], evaluation: bool
) -> list[Sample]:
    """Two samples of one rollout, one of them lost."""
    first, second = (
        Sample(
            group_index=sample.group_index,
            index=sample.index,
            rollout_id=sample.index,
            metadata=dict(sample.metadata),
            tokens=[5, 6, 2],
            response_length=1,
            rollout_log_probs=[-0.5],
            loss_mask=[1],
        )
        for _ in range(2)
    )
    first.status, second.status = Sample.Status.COMPLETED, Sample.Status.ABORTED
    return [first, second]


@pytest.fixture
def episodes(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name under which a recipe finds a kind that fans out."""
    module = ModuleType("my_episodes")
    module.EPISODES = RolloutKind(twice, fan_out=True)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_episodes", module)
    return "my_episodes:EPISODES"


def arguments(runtime: Runtime) -> Namespace:
    return Namespace(longrl_recipe=str(runtime.folder / "recipe.toml"), save=None)


def test_a_kind_of_your_own_is_what_the_hook_runs(
    lab_runtime: Callable[..., Runtime], episodes: str
) -> None:
    runtime = lab_runtime(f"rollout.kind={episodes}")
    args = arguments(runtime)
    (group,) = RecipeDataSource(args).get_samples(1)
    done = asyncio.run(hooks.generate(args, group[0], {"max_new_tokens": 4}))
    assert isinstance(done, list)
    assert [one.rollout_id for one in done] == [0, 0]
    # NaN for both: slime asks for no reward where one of them is aborted.
    assert all(one.reward != one.reward for one in done)


def test_an_old_slime_is_refused_by_its_version_before_anything_is_sampled(
    lab_runtime: Callable[..., Runtime], episodes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "can_fan_out", lambda _: False)
    with pytest.raises(UnsupportedHostError, match=r"v0\.2\.4 or older"):
        RecipeDataSource(arguments(lab_runtime(f"rollout.kind={episodes}")))
    RecipeDataSource(arguments(lab_runtime()))


def test_a_step_of_the_embedded_loop_is_cut_between_groups(
    lab_runtime: Callable[..., Runtime], episodes: str
) -> None:
    runtime = lab_runtime(f"rollout.kind={episodes}", "rollout.prompts=2", "rollout.updates=2")
    args = arguments(runtime)
    step = asyncio.run(Rollouts(args, runtime, RecipeDataSource(args)).train(0))
    size = runtime.recipe.rollout.group_size
    assert len(step.samples) == 4 * size
    updates = to_updates(step, runtime.recipe)
    assert [{sample.group for sample in update} for update in updates] == [{0}, {1}]
    assert [len({sample.rollout for sample in update}) for update in updates] == [size, size]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("single_tunr", 'write "single_turn"'),
        ("no_such_module:KIND", "no module 'no_such_module'"),
        ("json:dumps", "is no RolloutKind"),
        ("json:", "is no RolloutKind"),
    ],
)
def test_a_kind_that_is_not_there_is_explained(
    lab_runtime: Callable[..., Runtime], name: str, says: str
) -> None:
    runtime = lab_runtime(f"rollout.kind={name}")
    with pytest.raises(RecipeError, match=says):
        own_kind(runtime)


def test_the_single_turn_is_built_in(lab_runtime: Callable[..., Runtime]) -> None:
    assert own_kind(lab_runtime()) is None


def test_a_kind_that_fans_out_without_saying_so_is_told(
    lab_runtime: Callable[..., Runtime], episodes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["my_episodes"], "EPISODES", RolloutKind(twice))
    args = arguments(lab_runtime(f"rollout.kind={episodes}"))
    sample = Sample(index=0, group_index=0, metadata={"row": 0, "split": "train"})
    with pytest.raises(RecipeError, match="fan_out=True"):
        asyncio.run(hooks.generate(args, sample, {"max_new_tokens": 4}))
