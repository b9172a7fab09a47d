"""Step time and time left, by this attempt's rows alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.watch.eta import duration, median_step, seconds_left, step_seconds


def rows(*times: float, attempt: int = 1, first: int = 0) -> list[dict[str, float]]:
    return [{"step": first + i, "attempt": attempt, "time": t} for i, t in enumerate(times)]


def test_another_attempt_and_the_queue_before_it_do_not_count() -> None:
    stamps = rows(0, 10, 20) + rows(5000, 5030, 5060, 5090, attempt=2, first=2)
    assert step_seconds(stamps) == [30, 30, 30]
    # Step 5 is done; 6 to 9 are left, and 20 s of step 6 are over.
    assert seconds_left(stamps, 10, now=5110) == 100


def test_one_long_step_with_an_evaluation_in_it_moves_nothing() -> None:
    assert median_step(rows(0, 10, 20, 500, 510)) == 10


def test_nothing_is_said_before_the_second_step_of_an_attempt() -> None:
    assert median_step([]) is None
    assert seconds_left(rows(0), 10, now=5) is None
    assert seconds_left(rows(0, 10) + rows(99, attempt=2, first=1), 10, now=100) is None


@given(st.integers(2, 30), st.floats(0.1, 1000), st.floats(0, 1e6))
def test_time_left_is_never_below_zero(count: int, each: float, later: float) -> None:
    stamps = rows(*(i * each for i in range(count)))
    left = seconds_left(stamps, count + 3, now=(count - 1) * each + later)
    assert left is not None
    assert 0 <= left <= 3 * each * 1.001


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.25, "0.2 s"),
        (42, "42 s"),
        (420, "7 min"),
        (12_000, "3 h 20 min"),
        (187_200, "2 d 4 h"),
    ],
)
def test_durations_read_as_a_person_says_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text
