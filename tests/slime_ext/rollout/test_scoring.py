"""From responses to advantages through the hooks, with members missing, raising or truncated."""

from __future__ import annotations

import asyncio
import math
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import pytest

from rewards.base import Reward, RewardConfig
from rewards.types import Response, Score, Task
from slime_ext import hooks
from slime_ext.host.types import Sample
from slime_ext.metrics.names import describe
from slime_ext.metrics.records import read_rollouts, read_rows
from slime_ext.rollout.runtime import Runtime
from slime_ext.rollout.scoring import settle
from tests.fakes.group_reward import RANKED, Ranked


class Stubborn(Reward):
    """A user's reward that says what the response says, and raises for the response "raise"."""

    Config = RewardConfig

    async def score(self, task: Task, response: Response) -> Score:
        if response.text == "raise":
            raise KeyError("a fault of the user's")
        return Score(total=float(response.text), parts={"outcome": float(response.text)})


STUBBORN = f'reward.kind="{__name__}:Stubborn"'


def args_of(runtime: Runtime) -> Namespace:
    return Namespace(longrl_recipe=str(runtime.folder / "recipe.toml"))


def sample(text: str, group: int, index: int, **fields: Any) -> Sample:
    return Sample(
        group_index=group,
        index=index,
        tokens=[5, 6, 7],
        response=text,
        response_length=2,
        loss_mask=[1, 1],
        rollout_log_probs=[0.0, 0.0],
        status=fields.pop("status", Sample.Status.COMPLETED),
        metadata={"row": group, "id": f"r{group}", "split": "train", "stop": "<eos>"},
        **fields,
    )


def scored(runtime: Runtime, samples: list[Sample]) -> list[float]:
    return list(asyncio.run(hooks.reward(args_of(runtime), samples)))  # type: ignore[arg-type]


def test_a_reward_that_raises_for_one_sample_leaves_only_that_sample_out(
    lab_runtime: Callable[..., Runtime],
) -> None:
    runtime = lab_runtime(STUBBORN)
    samples = [sample(text, 0, i) for i, text in enumerate(["1", "0", "raise", "1"])]
    rewards = scored(runtime, samples)
    assert math.isnan(rewards[2])
    assert [rewards[i] for i in (0, 1, 3)] == [1.0, 0.0, 1.0]
    assert hooks.log_rollout(3, args_of(runtime), samples, None, 1.0) is False
    raw, advantages = hooks.post_process_rewards(args_of(runtime), samples)
    mean, std = 2 / 3, math.sqrt(1 / 3)
    assert advantages == pytest.approx(
        [(1 - mean) / (std + 1e-6), -mean / (std + 1e-6), 0.0, (1 - mean) / (std + 1e-6)]
    )
    assert raw[2] == pytest.approx(mean)
    assert samples[2].loss_mask == [0, 0]
    assert samples[2].remove_sample
    row = read_rows(runtime.folder / "metrics" / "rollout.jsonl")[0]
    assert row["undetermined"] == 1
    assert row["undetermined/error:KeyError"] == 1
    assert row["reward/total"] == pytest.approx(mean)


def test_a_group_without_any_verdict_is_masked_and_counted(
    lab_runtime: Callable[..., Runtime],
) -> None:
    runtime = lab_runtime(STUBBORN)
    samples = [sample("raise", 0, i) for i in range(3)]
    samples += [sample(text, 1, 3 + i) for i, text in enumerate(["0", "1", "1"])]
    scored(runtime, samples)
    settled = settle(runtime, samples)
    assert settled.advantages[:3] == [0.0] * 3
    assert all(s.loss_mask == [0, 0] for s in samples[:3])
    assert settled.raw[:3] == pytest.approx([2 / 3] * 3)
    assert settled.counts["undetermined_groups"] == 1
    assert all(math.isfinite(value) for value in settled.raw + settled.advantages)


def test_fan_out_counts_a_rollout_once(lab_runtime: Callable[..., Runtime]) -> None:
    runtime = lab_runtime(STUBBORN, "advantage.std=false")
    samples = [sample("1", 0, i, rollout_id=0) for i in range(3)]
    samples.append(sample("0", 0, 3, rollout_id=1))
    scored(runtime, samples)
    assert settle(runtime, samples).advantages == [0.5, 0.5, 0.5, -0.5]


def test_a_rollout_that_lost_a_sample_is_undetermined_as_a_whole(
    lab_runtime: Callable[..., Runtime],
) -> None:
    runtime = lab_runtime(STUBBORN, "advantage.std=false")
    lost = sample("1", 0, 0, rollout_id=0, status=Sample.Status.ABORTED)
    beside = [sample("1", 0, 0, rollout_id=0) for _ in range(2)]
    others = [sample(text, 0, i, rollout_id=i) for i, text in ((1, "1"), (2, "0"))]
    # slime asks for no reward of the samples beside the lost one, the embedded loop does.
    scored(runtime, [beside[0], *others])
    samples = [*beside, lost, *others]
    assert settle(runtime, samples).advantages == [0.0, 0.0, 0.0, 0.5, -0.5]
    assert [any(s.loss_mask or []) for s in samples] == [False, False, False, True, True]
    assert not any(s.metadata["combined"] for s in samples[:3])


@pytest.mark.parametrize("status", [Sample.Status.ABORTED, Sample.Status.FAILED])
def test_a_lost_response_is_undetermined_whatever_the_reward_would_say(
    lab_runtime: Callable[..., Runtime], status: Sample.Status
) -> None:
    runtime = lab_runtime(STUBBORN)
    lost, other = sample("1", 0, 0, status=status), sample("1", 0, 1)
    lost.metadata["finish"] = "http_500"
    assert [math.isnan(reward) for reward in scored(runtime, [lost, other])] == [True, False]
    assert lost.metadata["reward_status"] == f"{status.value}:http_500"


def test_a_reward_that_wants_the_group_gets_it_without_what_was_lost(
    lab_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ranked, "sizes", [])
    runtime = lab_runtime(f'reward.kind="{RANKED}"')
    group = [sample("x" * (i + 1), 0, i) for i in range(4)]
    group[1].status = Sample.Status.ABORTED
    rewards = scored(runtime, group)
    assert Ranked.sizes == [3]
    assert math.isnan(rewards[1])
    assert [rewards[i] for i in (0, 2, 3)] == [0.0, 0.5, 1.0]
    assert scored(runtime, []) == []
    for one in group:
        one.status = Sample.Status.FAILED
    assert all(math.isnan(reward) for reward in scored(runtime, group))
    assert Ranked.sizes == [3]


def test_a_group_reward_that_raises_leaves_its_whole_group_out(
    lab_runtime: Callable[..., Runtime],
) -> None:
    runtime = lab_runtime(f'reward.kind="{RANKED}"')
    group = [sample(text, 0, i) for i, text in enumerate(["a", "raise", "bbb"])]
    assert all(math.isnan(reward) for reward in scored(runtime, group))
    assert {one.metadata["reward_status"] for one in group} == {"error:KeyError"}


def test_evaluation_asks_a_group_reward_about_each_response_alone(
    lab_runtime: Callable[..., Runtime],
) -> None:
    runtime = lab_runtime(f'reward.kind="{RANKED}"')
    group = [sample("a", 0, i) for i in range(2)]
    for one in group:
        one.metadata["split"] = "eval"
    assert scored(runtime, group) == [1.0, 1.0]


def test_the_rubric_is_divided_by_the_maximum_of_its_own_group(
    lab_runtime: Callable[..., Runtime],
) -> None:
    runtime = lab_runtime("reward.kind=rubric")
    samples = []
    for group in (0, 1):
        task = runtime.task("train", group)
        names = [aliases[0] for aliases in task.gold_entities]
        for place, known in enumerate((names[:2], names[:1])):
            text = f"<think> {' '.join(known)} so </think> <answer> {task.answer} </answer>"
            samples.append(sample(text, group, 2 * group + place))
    scored(runtime, samples)
    settle(runtime, samples)
    for best, other in ((samples[0], samples[1]), (samples[2], samples[3])):
        assert best.metadata["combined_parts"]["rubric"] == 1.0
        assert best.metadata["combined"] == pytest.approx(1.0)
        assert other.metadata["combined"] < best.metadata["combined"]


@pytest.mark.parametrize(
    ("mode", "total", "mask"),
    [("zero", 0.0, [1, 1]), ("keep", 1.0, [1, 1]), ("mask", 0.0, [0, 0])],
)
def test_what_a_truncated_response_is_worth(
    lab_runtime: Callable[..., Runtime], mode: str, total: float, mask: list[int]
) -> None:
    runtime = lab_runtime("reward.kind=outcome", f"reward.truncated={mode}")
    answer = runtime.task("train", 0).answer
    cut = sample(
        f"<think> a </think> <answer> {answer} </answer>", 0, 0, status=Sample.Status.TRUNCATED
    )
    cut.metadata["stop"] = None
    samples = [cut, sample("<think> a </think> <answer> none </answer>", 0, 1)]
    assert scored(runtime, samples)[0] == total
    settle(runtime, samples)
    assert cut.loss_mask == mask


def test_flat_groups_are_dropped_up_to_the_limit_of_a_step(
    lab_runtime: Callable[..., Runtime],
) -> None:
    runtime = lab_runtime(
        STUBBORN, "rollout.filter=flat", "rollout.prompts=1", "rollout.filter_max_batches=2"
    )
    flat = [sample("0", 0, i) for i in range(2)]
    mixed = [sample(str(i), 1, 2 + i) for i in range(2)]
    scored(runtime, flat + mixed)
    verdict = hooks.keep_group(args_of(runtime), flat)
    assert (verdict.keep, verdict.reason) == (False, "flat")
    assert hooks.keep_group(args_of(runtime), mixed).keep
    fan_out = [[flat[0]], [mixed[0], mixed[1]]]
    assert hooks.keep_group(args_of(runtime), fan_out).keep is True
    again = [hooks.keep_group(args_of(runtime), flat).keep for _ in range(3)]
    assert again == [False, True, True]
    hooks.log_rollout(0, args_of(runtime), flat, None, 1.0)
    assert hooks.keep_group(args_of(runtime), flat).keep is False


def test_a_step_is_recorded_with_named_metrics_and_every_response(
    lab_runtime: Callable[..., Runtime],
) -> None:
    runtime = lab_runtime(STUBBORN)
    samples = [sample(str(i % 2), 0, i) for i in range(4)]
    scored(runtime, samples)
    hooks.log_rollout(0, args_of(runtime), samples, {"batches": 2}, 0.5)
    hooks.post_process_rewards(args_of(runtime), samples)
    row = read_rows(runtime.folder / "metrics" / "rollout.jsonl")[0]
    header = {"step", "attempt", "time"}
    assert [key for key in row if key not in header and describe(key) is None] == []
    assert (row["reward/outcome"], row["group/mixed"], row["host/batches"]) == (0.5, 1.0, 2.0)
    stored = list(read_rollouts(runtime.folder / "rollouts" / "step_0.jsonl.zst"))
    assert [r["response"] for r in stored] == ["0", "1", "0", "1"]
    assert sum(r["advantage"] for r in stored) == pytest.approx(0.0)
    assert stored[0]["id"] == "r0"
    assert "context" not in str(stored[0])
