"""Groups without a verdict, aborted members, uneven fan-out and data sets without a right answer,
under slime."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from slime_ext.host.types import Sample
from tests.fakes.exact_judge import exact_reply
from tests.fakes.judge import Messages, fake_judge
from tests.slime_host.lab import lab_run, slime_args, without_fan_out
from tests.slime_host.manager import bare_manager, one_rollout

UNDECIDED = 'reward.kind="tests.slime_host.odd_rewards:FirstTaskUndecided"'
ALL_WRONG = 'reward.kind="tests.slime_host.odd_rewards:AllWrong"'


def taught(data: dict[str, Any]) -> list[bool]:
    """For each sample whether it moves the policy."""
    return [
        bool(advantage) and any(mask)
        for advantage, mask in zip(data["rewards"], data["loss_masks"], strict=True)
    ]


def test_a_group_without_verdicts_passes_the_loggers_and_teaches_nothing(
    runs: Path, engine: str, logged: list[dict[str, Any]]
) -> None:
    run = lab_run(runs, UNDECIDED, name="undecided")
    samples, data = one_rollout(bare_manager(slime_args(run, engine)))
    undecided = [math.isnan(sample.reward) for sample in samples]
    assert sum(undecided) == 4
    assert len({s.group_index for s, no in zip(samples, undecided, strict=True) if no}) == 1
    for none, moves, mask in zip(undecided, taught(data), data["loss_masks"], strict=True):
        assert not (none and moves)
        assert any(mask) is not none
    assert all(math.isfinite(advantage) for advantage in data["rewards"])
    assert any(taught(data))
    ours = next(call for call in logged if "rollout/undetermined" in call)
    assert ours["rollout/undetermined"] == 4
    assert not any(isinstance(value, float) and math.isnan(value) for value in ours.values())


def test_calls_of_the_judge_that_fail_leave_their_samples_out_and_are_counted(
    runs: Path, engine: str, logged: list[dict[str, Any]]
) -> None:
    failed: set[str] = set()

    def fails_on_its_first_question(messages: Messages) -> str:
        question = messages[-1]["content"].partition("=== candidate")[0].partition("=== ref")[2]
        failed.add(min(failed | {question}))
        if question in failed:
            raise ConnectionError
        return exact_reply(messages)

    with fake_judge(fails_on_its_first_question) as judge:
        run = lab_run(
            runs,
            'outcome.kind="judge"',
            f'outcome.judge.endpoints=[{{url="{judge.url}"}}]',
            "outcome.judge.attempts=1",
            "outcome.judge.breaker_failures=100",
            "outcome.judge.max_no_verdict_share=1.0",
            name="judge-fails",
        )
        samples, data = one_rollout(bare_manager(slime_args(run, engine)))
        assert judge.calls
    undecided = [math.isnan(sample.reward) for sample in samples]
    assert any(undecided)
    for none, moves, mask in zip(undecided, taught(data), data["loss_masks"], strict=True):
        assert not (none and (moves or any(mask)))
    ours = next(call for call in logged if "rollout/undetermined" in call)
    assert ours["rollout/undetermined"] == sum(undecided)
    reasons = [key for key in ours if key.startswith("rollout/undetermined/no_verdict")]
    assert sum(ours[key] for key in reasons) == sum(undecided)


@pytest.mark.parametrize(("kind", "members"), [("ABORTS_ONE", {0}), ("ABORTS_FOUR", {0, 1, 2, 3})])
def test_aborted_members_pass_the_loggers_and_teach_nothing(
    kind: str, members: set[int], runs: Path, engine: str
) -> None:
    run = lab_run(
        runs, f'rollout.kind="tests.slime_host.odd_rollouts:{kind}"', name=f"aborted-{len(members)}"
    )
    samples, data = one_rollout(bare_manager(slime_args(run, engine)))
    assert {s.index for s in samples if s.status is Sample.Status.ABORTED} == members
    moves = dict(zip(data["sample_indices"], taught(data), strict=True))
    assert not any(moves[index] for index in members)
    masks = dict(zip(data["sample_indices"], data["loss_masks"], strict=True))
    assert not any(any(masks[index]) for index in members)
    assert all(math.isfinite(advantage) for advantage in data["rewards"])


@pytest.mark.parametrize("over_sampling", [3, 6])
def test_a_data_set_without_a_right_answer_ends_under_the_filter(
    over_sampling: int, runs: Path, engine: str
) -> None:
    run = lab_run(
        runs,
        ALL_WRONG,
        'rollout.filter="flat"',
        "rollout.filter_max_batches=3",
        name=f"wrong-{over_sampling}",
    )
    args = slime_args(run, engine, "--over-sampling-batch-size", str(over_sampling))
    manager = bare_manager(args)
    drawn = 0
    for rollout_id in range(2):
        samples, data = one_rollout(manager, rollout_id)
        assert len(samples) == 12
        assert not any(taught(data))
        used = manager.data_source.next_group - drawn
        assert 9 < used <= 9 + 3 + over_sampling
        drawn += used


@pytest.mark.skipif(without_fan_out(), reason="slime v0.2.4 cannot train on fan-out")
def test_uneven_fan_out_counts_each_whole_rollout_once(
    runs: Path, engine: str, logged: list[dict[str, Any]]
) -> None:
    kind = 'rollout.kind="tests.slime_host.odd_rollouts:UNEVEN_AND_LOSSY"'
    samples, data = one_rollout(bare_manager(slime_args(lab_run(runs, kind, name="lossy"), engine)))
    assert [s.rollout_id for s in samples] == [n for n in range(12) for _ in range(1 + n % 3)]
    whole = {s.rollout_id: s.reward for s in samples if s.rollout_id != 1}
    for sample, advantage, mask in zip(samples, data["rewards"], data["loss_masks"], strict=True):
        group = [reward for rollout, reward in whole.items() if rollout // 4 == sample.group_index]
        assert len(group) == (3 if sample.group_index == 0 else 4)
        assert advantage == pytest.approx(
            advantage_by_the_book(sample.reward, group) if sample.rollout_id != 1 else 0.0
        )
        assert any(mask) is (sample.rollout_id != 1)
    assert any(data["rewards"])
    summed = dict(zip(data["rollout_ids"], data["rollout_mask_sums"], strict=True))
    for rollout, total in summed.items():
        places = [place for place, n in enumerate(data["rollout_ids"]) if n == rollout]
        assert total == sum(sum(data["loss_masks"][place]) for place in places)


def advantage_by_the_book(reward: float, group: list[float]) -> float:
    """(r - mean) / (std + 1e-6), std with n - 1, over a group's rollouts; 0 if all are even."""
    if max(group) - min(group) <= 1e-6:
        return 0.0
    mean = sum(group) / len(group)
    std = math.sqrt(sum((other - mean) ** 2 for other in group) / (len(group) - 1))
    return (reward - mean) / (std + 1e-6)
