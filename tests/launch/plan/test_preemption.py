"""What the plan says a preemption and a crash cost."""

from __future__ import annotations

import pytest

from launch.plan.notes import notes
from launch.plan.plan import make_plan
from tests.launch.plan.made import SHAPES, made


def preemption(signal_s: int) -> tuple[str, float, float]:
    """The sentence, and the seconds of a rollout and of a step."""
    recipe = made(cluster__signal_s=signal_s, checkpoint__every=10)
    plan = make_plan(recipe, SHAPES["4b"])
    (said,) = [one for one in notes(recipe, SHAPES["4b"], plan) if "a preemption loses" in one]
    return said, plan.duration.rollout_s, plan.duration.step_s


def test_with_notice_longer_than_a_step_one_rollout_is_lost() -> None:
    said, rollout_s, step_s = preemption(100_000)
    assert f"the rollout under way, {rollout_s / 60:.0f} minutes: told 100000 s before" in said
    assert f"a crash loses {5 * step_s / 60:.0f} minutes on average" in said


def test_with_less_it_is_half_the_time_between_saves() -> None:
    said, _, step_s = preemption(60)
    assert f"loses {5 * step_s / 60:.0f} minutes of work on average, half of" in said
    assert "cluster.signal_s = 60 s, is shorter than a step" in said


@pytest.mark.parametrize("signal_s", [60, 100_000])
def test_the_interval_is_named(signal_s: int) -> None:
    assert "checkpoint.every = 10 steps" in preemption(signal_s)[0]
