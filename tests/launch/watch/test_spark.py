"""Curves of characters."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from launch.watch.spark import BLOCKS, PLAIN, sparkline


def test_a_rise_goes_through_all_levels() -> None:
    assert sparkline([float(i) for i in range(8)]) == BLOCKS
    assert sparkline([float(i) for i in range(8)], plain=True) == PLAIN


def test_several_steps_share_a_character_by_their_mean() -> None:
    assert sparkline([0.0, 0.0, 10.0, 0.0, 10.0, 10.0], width=3) == "▁▅█"


def test_a_gap_is_a_gap_and_nothing_is_nothing() -> None:
    assert sparkline([0.0, None, math.nan, 1.0]) == "▁  █"
    assert sparkline([]) == sparkline([None, None]) == ""
    assert sparkline([3.0, 3.0]) == "▁▁"


@given(st.lists(st.one_of(st.none(), st.floats(-1e9, 1e9)), max_size=200), st.booleans())
def test_any_figures_fit(figures: list[float | None], plain: bool) -> None:
    line = sparkline(figures, plain=plain)
    assert len(line) <= 24
    assert set(line) <= set((PLAIN if plain else BLOCKS) + " ")
