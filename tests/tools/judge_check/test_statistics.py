"""Intervals and agreement against values worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from longrl_tools.judge_check.statistics import Agreement, share


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        # With z2 = 3.8414588: n = 10, p = 1/2: (0.5 + z2/20) / (1 + z2/10) is 1/2, and the half
        # width is 1.959964 / 1.38414588 * sqrt(0.025 + 0.0096036) = 0.263406.
        (5, 10, 0.236594, 0.763406),
        # p = 0: the upper end is z2 / (n + z2).
        (0, 10, 0.0, 3.8414588 / 13.8414588),
        (0, 1, 0.0, 3.8414588 / 4.8414588),
        # p = 1: the lower end is n / (n + z2).
        (100, 100, 100 / 103.8414588, 1.0),
        # p = 0.05, n = 100: centre (0.05 + 0.0192073) / 1.0384146 = 0.0666471, half width
        # 1.959964 / 1.0384146 * sqrt(0.000475 + 0.0000960365) = 0.0451036.
        (5, 100, 0.0215435, 0.1117507),
    ],
)
def test_wilson_interval(hits, n, low, high):
    found = share(hits, n)
    assert found.value == hits / n
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-6)


def test_a_share_of_nothing_is_no_number():
    found = share(0, 0)
    assert (found.value, found.low, found.high) == (None, None, None)


@pytest.mark.parametrize(("hits", "n"), [(2, 1), (-1, 3)])
def test_impossible_counts_are_refused(hits, n):
    with pytest.raises(ValueError, match="between 0 and n"):
        share(hits, n)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_holds_the_share_and_stays_in_bounds(counts):
    found = share(*counts)
    assert 0 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


def test_agreement_of_a_worked_example():
    # 45 yes and 15 no by both; 25 yes to wrong, 15 no to right. p_o = 0.6;
    # p_e = 0.70 * 0.60 + 0.30 * 0.40 = 0.54; kappa = 0.06 / 0.46.
    found = Agreement(true_yes=45, false_yes=25, false_no=15, true_no=15)
    assert found.accuracy().value == 0.6
    assert found.kappa() == pytest.approx(0.06 / 0.46)
    assert (found.false_yes_rate().hits, found.false_yes_rate().n) == (25, 40)
    assert (found.false_no_rate().hits, found.false_no_rate().n) == (15, 60)


@pytest.mark.parametrize(
    ("counts", "kappa"),
    [
        ((10, 0, 0, 10), 1.0),
        ((0, 10, 10, 0), -1.0),
        ((5, 5, 5, 5), 0.0),
        ((10, 0, 0, 0), None),
        ((0, 0, 0, 0), None),
        ((10, 10, 0, 0), 0.0),
    ],
)
def test_kappa_at_its_corners(counts, kappa):
    assert Agreement(*counts).kappa() == kappa
