"""The rollout half of the loop: what a reward is given, and when."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Callable

import pytest

from slime_ext.embedded.rollouts import Rollouts
from slime_ext.rollout.data_source import RecipeDataSource
from slime_ext.rollout.runtime import Runtime
from tests.fakes.engine import answer, fake_engine
from tests.fakes.group_reward import RANKED, Ranked

STOP = {"type": "stop", "matched": 2}


def test_a_reward_that_scores_groups_gets_each_group_once_it_is_complete(
    lab_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ranked, "sizes", [])
    runtime = lab_runtime(
        f'reward.kind="{RANKED}"',
        "rollout.prompts=2",
        "rollout.group_size=3",
        "advantage.std=false",
    )
    with fake_engine({}) as engine:
        args = Namespace(
            longrl_recipe=str(runtime.folder / "recipe.toml"),
            save=None,
            longrl_batch_requests=True,
            sglang_router_ip="127.0.0.1",
            sglang_router_port=engine.port,
        )
        engine.plan.append([answer([30] * (n + 1) + [2], STOP) for n in (0, 1, 2, 2, 1, 0)])
        step = asyncio.run(Rollouts(args, runtime, RecipeDataSource(args)).train(0))
    assert Ranked.sizes == [3, 3]
    assert step.raw == [0.0, 0.5, 1.0, 1.0, 0.5, 0.0]
    assert step.advantages == pytest.approx([-0.5, 0.0, 0.5, 0.5, 0.0, -0.5])
    assert [sample.reward for sample in step.samples] == step.raw
