"""Waits between attempts, and the Retry-After header in both of its forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.judge.backoff import bound_s, retry_after_s

NOON = 1_735_732_800.0  # Wed, 01 Jan 2025 12:00:00 GMT


def test_bounds_double_up_to_the_longest_wait() -> None:
    assert [bound_s(n, answers_others=False) for n in range(1, 7)] == [0.5, 1, 2, 4, 8, 8]
    assert [bound_s(n, answers_others=True) for n in (1, 2, 9)] == [0.02] * 3


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        ("Wed, 01 Jan 2025 12:00:30 GMT", 30.0),
        ("Wed, 01 Jan 2025 12:00:30 -0000", 30.0),
        ("Wed, 01 Jan 2025 11:00:00 GMT", 0.0),
        (None, None),
        ("", None),
        ("-3", None),
        ("inf", None),
        ("1e9", None),
        ("soon", None),
        ("٣", None),
        ("9" * 400, None),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, NOON) == seconds


@given(st.text(max_size=60))
def test_any_header_is_read_without_raising(value: str) -> None:
    read = retry_after_s(value, NOON)
    assert read is None or read >= 0
