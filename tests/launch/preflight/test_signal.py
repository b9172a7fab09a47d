"""How many groups carry a signal."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.preflight.signal import check_signal, flat_share
from slime_ext.metrics.records import Records
from tests.launch.preflight.conftest import MakeContext, named


@given(p=st.floats(0, 1), size=st.integers(2, 6))
def test_the_share_is_that_of_all_outcomes(p: float, size: int) -> None:
    chance = sum(
        p ** sum(group) * (1 - p) ** (size - sum(group))
        for group in itertools.product((0, 1), repeat=size)
        if len(set(group)) == 1
    )
    assert flat_share(p, size) == pytest.approx(chance, abs=1e-12)


def test_groups_of_two_at_18_percent_are_mostly_flat() -> None:
    assert flat_share(0.18, 2) == pytest.approx(0.7048)


def test_unknown_accuracy_is_skipped(make: MakeContext) -> None:
    context = make()
    assert named(check_signal(context.recipe, context), "groups").status == "skip"


@pytest.mark.parametrize(
    ("accuracy", "status", "remedy"),
    [
        (0.4, "pass", ""),
        (0.02, "warn", "easier"),
        (0.985, "warn", "harder"),
        (0.0, "warn", "partial credit"),
        (1.0, "warn", "partial credit"),
    ],
)
def test_what_the_recipe_states(
    make: MakeContext, accuracy: float, status: str, remedy: str
) -> None:
    context = make(plan={"last_accuracy": accuracy})
    finding = named(check_signal(context.recipe, context), "groups")
    assert finding.status == status
    assert remedy in finding.remedy
    assert "plan.last_accuracy" in finding.message


def test_the_group_size_that_would_do_is_named(make: MakeContext) -> None:
    context = make(plan={"last_accuracy": 0.02})
    remedy = named(check_signal(context.recipe, context), "groups").remedy
    size = int(remedy.split("group_size = ")[1].split(" ")[0])
    assert flat_share(0.02, size) <= 0.8 < flat_share(0.02, size - 1)


def test_the_last_evaluation_counts_more_than_the_recipe(make: MakeContext) -> None:
    context = make(plan={"last_accuracy": 0.02})
    records = Records(context.folder.path)
    for step, outcome in ((0, 0.1), (20, 0.5), (40, float("nan"))):
        records.write("eval", step, {"reward/outcome": outcome})
    finding = named(check_signal(context.recipe, context), "groups")
    assert finding.status == "pass"
    assert "evaluation at step 20" in finding.message
    assert "0.5" in finding.message
