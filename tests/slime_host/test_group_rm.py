"""Rewards that want whole groups: slime's --group-rm hands them over, its evaluation gives way to
ours, and fan-out is refused beside it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from slime_ext.host.types import Sample
from slime_ext.recipe.errors import RecipeError
from tests.fakes.group_reward import RANKED, Ranked
from tests.slime_host.lab import lab_run, slime_args, without_fan_out
from tests.slime_host.manager import assert_same_training, bare_manager, one_rollout

WHOLE = f'reward.kind="{RANKED}"'
EVALUATED = ("--eval-interval", "1", "--eval-prompt-data", "held-out", "read-by-slimes-own.jsonl")
"""slime asks for a file of its own, also where another function evaluates."""


def test_a_group_has_the_same_rewards_on_both_backends(
    runs: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ranked, "sizes", [])
    run, twin = (lab_run(runs, WHOLE, name=f"ranked-{host}") for host in ("slime", "embedded"))
    data = assert_same_training(run, twin, engine, "--group-rm")
    assert Ranked.sizes == [4] * 6
    assert any(data["rewards"]), "groups without signal compare nothing"
    assert set(data["raw_reward"]) <= {0.0, 1 / 3, 2 / 3, 1.0}


def test_a_reward_of_single_responses_is_what_it_is_without_the_flag(
    runs: Path, engine: str
) -> None:
    run, twin = (lab_run(runs, name=f"chunk-{host}") for host in ("group-rm", "embedded"))
    assert any(assert_same_training(run, twin, engine, "--group-rm")["rewards"])


def test_a_member_that_was_lost_is_left_out_of_its_group(
    runs: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ranked, "sizes", [])
    kind = 'rollout.kind="tests.slime_host.odd_rollouts:ABORTS_ONE"'
    run = lab_run(runs, WHOLE, kind, name="ranked-lossy")
    samples, data = one_rollout(bare_manager(slime_args(run, engine, "--group-rm")))
    assert sorted(Ranked.sizes) == [3, 4, 4]
    assert [s.index for s in samples if s.status is Sample.Status.ABORTED] == [0]
    assert [math.isnan(sample.reward) for sample in samples] == [True] + [False] * 11
    assert (data["rewards"][0], any(data["loss_masks"][0])) == (0.0, False)


def test_evaluation_is_ours_where_slimes_refuses(runs: Path, engine: str) -> None:
    from slime.rollout.base_types import call_rollout_fn

    run = lab_run(runs, WHOLE, name="ranked-evaluation")
    args = slime_args(run, engine, "--group-rm", *EVALUATED)
    manager = bare_manager(args)
    output = call_rollout_fn(
        manager.eval_generate_rollout, args, 0, manager.data_source, evaluation=True
    )
    assert output.data["eval"]["rewards"] == [1.0] * 6


def test_slimes_own_evaluation_beside_the_flag_is_refused(runs: Path, engine: str) -> None:
    run = lab_run(runs, WHOLE, name="ranked-refused")
    args = slime_args(run, engine, "--group-rm", *EVALUATED)
    args.eval_function_path = args.rollout_function_path
    with pytest.raises(RecipeError, match=r"--eval-function-path slime_ext\.hooks\.evaluate"):
        bare_manager(args)
    with pytest.raises(RecipeError, match="add --group-rm"):
        bare_manager(slime_args(run, engine))


@pytest.mark.skipif(without_fan_out(), reason="slime v0.2.4 is refused for its fan-out alone")
def test_fan_out_beside_the_flag_is_refused(runs: Path, engine: str) -> None:
    run = lab_run(runs, 'rollout.kind="tests.slime_host.odd_rollouts:UNEVEN"', name="group-fan-out")
    with pytest.raises(RecipeError, match="leave out --group-rm"):
        bare_manager(slime_args(run, engine, "--group-rm"))
