"""The breaker alone, on a clock of numbers."""

from __future__ import annotations

from rewards.judge.breaker import Breaker


def fail(breaker: Breaker, times: int, under_way: int = 0, now: float = 0.0) -> list[bool]:
    return [breaker.fail(probe=False, under_way=under_way, now=now) for _ in range(times)]


def test_it_opens_at_the_given_number_in_a_row() -> None:
    breaker = Breaker(failures=3, reset_s=10)
    assert fail(breaker, 2) == [False, False]
    breaker.succeed()
    assert fail(breaker, 3, now=5.0) == [False, False, True]
    assert breaker.ready_at() == 15.0


def test_a_row_shorter_than_what_is_under_way_does_not_open_it() -> None:
    breaker = Breaker(failures=3, reset_s=10)
    assert not any(fail(breaker, 15, under_way=16))
    assert fail(breaker, 1, under_way=16) == [True]


def test_a_wave_of_requests_that_all_fail_opens_it() -> None:
    breaker = Breaker(failures=5, reset_s=10)
    opened = [breaker.fail(probe=False, under_way=left, now=0.0) for left in range(63, -1, -1)]
    assert opened.count(True) == 1


def test_one_probe_and_its_three_ends() -> None:
    breaker = Breaker(failures=1, reset_s=10)
    fail(breaker, 1)
    assert breaker.start()
    assert breaker.ready_at() is None
    breaker.fail(probe=True, under_way=0, now=20.0)
    assert breaker.ready_at() == 30.0
    assert breaker.start()
    breaker.abandon(probe=True)
    assert breaker.ready_at() == 30.0
    assert breaker.start()
    assert breaker.succeed()
    assert breaker.ready_at() == 0.0
    assert not breaker.start()


def test_a_late_failure_does_not_lengthen_the_opening() -> None:
    breaker = Breaker(failures=1, reset_s=10)
    fail(breaker, 1, now=0.0)
    fail(breaker, 5, now=9.0)
    assert breaker.ready_at() == 10.0
