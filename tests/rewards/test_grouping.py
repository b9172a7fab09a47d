"""Group-relative advantages: uneven groups, fan-out, flat groups, undetermined members."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.grouping import (
    AdvantageConfig,
    Member,
    centre,
    group_advantages,
    is_flat,
    normalise_by_max,
)

STD = AdvantageConfig()
CENTRED = AdvantageConfig(std=False)


def group(rewards, config=STD, group_id=0):
    return group_advantages([Member(group_id, i, r) for i, r in enumerate(rewards)], config)


def test_formula_with_and_without_std():
    rewards = [1.0, 0.0, 0.0, 0.5]
    mean, std = statistics.mean(rewards), statistics.stdev(rewards)
    assert group(rewards).advantages == pytest.approx([(r - mean) / (std + 1e-6) for r in rewards])
    assert group(rewards, CENTRED).advantages == pytest.approx([r - mean for r in rewards])
    floor = AdvantageConfig(std_floor=0.1)
    assert group(rewards, floor).advantages == pytest.approx(
        [(r - mean) / (std + 0.1) for r in rewards]
    )


def test_uneven_groups_stay_apart():
    sizes = {0: [1.0, 0.0, 0.0, 1.0], 1: [5.0, 5.0, 5.0], 2: [0.0, 0.0, 1.0, 0.0]}
    members = [Member(g, i, r) for g, rewards in sizes.items() for i, r in enumerate(rewards)]
    result = group_advantages(members, STD)
    assert result.advantages[4:7] == [0.0, 0.0, 0.0]
    assert result.advantages[:4] == group(sizes[0]).advantages
    assert result.advantages[7:] == group(sizes[2]).advantages
    assert result.counts["flat_groups"] == 1
    assert all(result.keep)


def test_a_rollout_with_three_samples_counts_once():
    members = [Member(0, 0, 1.0)] * 3 + [Member(0, 1, 0.0)]
    assert group_advantages(members, CENTRED).advantages == [0.5, 0.5, 0.5, -0.5]
    scale = statistics.stdev([1.0, 0.0]) + 1e-6
    assert group_advantages(members, STD).advantages == pytest.approx(
        [0.5 / scale] * 3 + [-0.5 / scale]
    )


def test_the_same_rollout_id_in_two_groups_is_two_rollouts():
    members = [Member(0, 0, 1.0), Member(1, 0, 0.0), Member(0, 1, 0.0), Member(1, 1, 0.0)]
    result = group_advantages(members, CENTRED)
    assert result.advantages == [0.5, 0.0, -0.5, 0.0]


def test_equal_and_nearly_equal_rewards():
    assert group([0.35] * 8).advantages == [0.0] * 8
    assert group([0.35 + 1e-7 * i for i in range(8)]).advantages == [0.0] * 8
    bounded = group([0.35] * 7 + [0.95]).advantages
    assert max(map(abs, bounded)) == pytest.approx(7 / math.sqrt(8), rel=1e-4)
    tiny = group([0.35] * 7 + [0.35 + 2e-6]).advantages
    assert max(map(abs, tiny)) <= 7 / math.sqrt(8)


def test_flat_is_decided_before_arithmetic():
    assert is_flat([0.1 + 0.2, 0.3])
    assert is_flat([])
    assert is_flat([5.0])
    assert not is_flat([0.0, 1.1e-6])


def test_an_undetermined_member_moves_nothing():
    plain, with_lost = group([1.0, 0.0, 0.5]), group([1.0, None, 0.0, 0.5])
    kept = [a for i, a in enumerate(with_lost.advantages) if i != 1]
    assert kept == plain.advantages
    assert with_lost.advantages[1] == 0.0
    assert with_lost.keep == [True, False, True, True]
    assert with_lost.raw == [1.0, 0.5, 0.0, 0.5]
    assert with_lost.counts["undetermined"] == 1


@pytest.mark.parametrize("lost", [None, math.nan, math.inf])
def test_what_is_no_number_is_undetermined(lost):
    result = group([1.0, lost, 0.0])
    assert result.keep == [True, False, True]
    assert result.raw[1] == 0.5
    assert all(map(math.isfinite, result.advantages))


def test_fewer_than_two_determined_masks_the_group():
    members = [Member(0, 0, 1.0), Member(0, 1, None), Member(1, 0, 1.0), Member(1, 1, 0.0)]
    result = group_advantages(members, STD)
    assert result.keep == [False, False, True, True]
    assert result.advantages[:2] == [0.0, 0.0]
    assert result.raw[:2] == [1.0, 1.0]
    assert result.counts == {
        "groups": 2,
        "flat_groups": 0,
        "undetermined_groups": 1,
        "undetermined": 1,
        "masked": 2,
    }


def test_one_fanned_out_rollout_is_no_group():
    result = group_advantages([Member(0, 7, 1.0), Member(0, 7, 0.0)], STD)
    assert result.keep == [False, False]
    assert result.counts["undetermined_groups"] == 1


def test_a_whole_undetermined_group_reports_the_batch_mean():
    members = [Member(0, 0, None), Member(0, 1, None), Member(1, 0, 1.0), Member(1, 1, 0.5)]
    result = group_advantages(members, STD)
    assert result.raw == [0.75, 0.75, 1.0, 0.5]
    nothing = group([None, None])
    assert (nothing.raw, nothing.keep, nothing.advantages) == ([0.0] * 2, [False] * 2, [0.0] * 2)


def test_batch_mean_counts_a_fanned_out_rollout_once():
    members = [Member(0, 0, None), *[Member(1, 0, 1.0)] * 3, Member(1, 1, 0.0)]
    assert group_advantages(members, STD).raw[0] == 0.5


def test_empty_batch():
    result = group_advantages([], STD)
    assert (result.advantages, result.keep, result.raw) == ([], [], [])


def test_normalise_by_max():
    assert normalise_by_max([0.5, 0.25, None]) == [1.0, 0.5, None]
    assert normalise_by_max([0.0, 0.0]) == [0.0, 0.0]
    assert normalise_by_max([None]) == [None]
    assert normalise_by_max([]) == []


def test_centre_serves_any_quantity_of_a_group():
    centred = centre([0.0, -0.4, None, -0.2], [0, 1, 2, 3])
    assert centred.values == pytest.approx([0.2, -0.2, 0.0, 0.0])
    assert (centred.units, centred.flat) == (3, False)
    assert centre([-0.1] * 3, [0, 1, 2]).flat
    with pytest.raises(ValueError, match="2 values for 1 rollout"):
        centre([1.0, 2.0], [0])


rewards_or_none = st.one_of(st.none(), st.floats(-10, 10, allow_nan=False))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), rewards_or_none), max_size=40))
def test_properties(rows):
    members = [Member(*row) for row in rows]
    for config in (STD, CENTRED):
        result = group_advantages(members, config)
        for member, advantage, keep, raw in zip(
            members, result.advantages, result.keep, result.raw, strict=True
        ):
            assert math.isfinite(advantage)
            assert math.isfinite(raw)
            assert keep or advantage == 0.0
            if member.reward is None:
                assert not keep
            else:
                assert raw == member.reward


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=8), st.integers(1, 3))
def test_copies_of_a_sample_change_nothing(rewards, copies):
    once = group(rewards)
    members = [Member(0, i, r) for i, r in enumerate(rewards) for _ in range(copies)]
    fanned = group_advantages(members, STD).advantages
    assert fanned[::copies] == pytest.approx(once.advantages, abs=1e-6)
    assert sum(once.advantages) == pytest.approx(0.0, abs=1e-4)
    assert max(map(abs, once.advantages)) <= (len(rewards) - 1) / math.sqrt(len(rewards)) + 1e-6


def test_floor_must_be_positive():
    with pytest.raises(ValueError, match="std_floor"):
        AdvantageConfig(std_floor=0.0)
