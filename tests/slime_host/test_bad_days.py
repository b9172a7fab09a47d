"""Groups without a verdict, aborted members and data sets without a right answer, under slime."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from slime_ext.host.types import Sample
from tests.slime_host.lab import lab_run, slime_args
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
