"""Seeded order, whole epochs, and resumption at the exact next prompt."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_ext.data.errors import DataError
from slime_ext.data.stream import PromptStream, epoch_order


@dataclass
class FakeRows:
    rows: int
    fingerprint: str = "f"

    def __len__(self) -> int:
        return self.rows


sizes = st.integers(1, 12)
seeds = st.integers(0, 2**64)
takes = st.lists(st.integers(0, 30), max_size=6)


@given(sizes, seeds, st.booleans(), takes, takes)
def test_a_restored_stream_continues_as_if_never_stopped(
    rows: int, seed: int, shuffle: bool, before: list[int], after: list[int]
) -> None:
    stream = PromptStream(FakeRows(rows), seed, shuffle)
    for n in before:
        stream.next(n)
    state = json.loads(json.dumps(stream.state()))
    resumed = PromptStream(FakeRows(rows), seed, shuffle)
    resumed.next(3)
    resumed.restore(state)
    assert resumed.state() == state
    for n in after:
        assert resumed.next(n) == stream.next(n)


@given(sizes, seeds, st.booleans(), takes)
def test_how_many_are_asked_for_at_once_does_not_matter(
    rows: int, seed: int, shuffle: bool, parts: list[int]
) -> None:
    one, many = (PromptStream(FakeRows(rows), seed, shuffle) for _ in range(2))
    assert one.next(sum(parts)) == list(chain.from_iterable(many.next(n) for n in parts))


@given(sizes, seeds, st.integers(1, 4))
def test_every_epoch_serves_each_row_once(rows: int, seed: int, epochs: int) -> None:
    served = PromptStream(FakeRows(rows), seed, True).next(rows * epochs)
    for epoch in range(epochs):
        part = served[epoch * rows : (epoch + 1) * rows]
        assert part == epoch_order(rows, seed, epoch, True).tolist()
        assert sorted(part) == list(range(rows))


def test_order_depends_on_seed_and_epoch() -> None:
    orders = [tuple(epoch_order(50, seed, epoch, True)) for seed in (0, 1) for epoch in (0, 1)]
    assert len(set(orders)) == 4
    assert np.array_equal(epoch_order(50, 3, 1, False), np.arange(50))


def test_the_order_of_a_seed_never_changes() -> None:
    # A checkpoint of last year must resume: these numbers are part of its format.
    assert epoch_order(8, 17, 0, True).tolist() == [6, 0, 4, 5, 3, 2, 7, 1]
    assert epoch_order(8, 17, 1, True).tolist() == [4, 0, 6, 2, 7, 5, 3, 1]


@pytest.mark.parametrize(
    ("key", "stream"),
    [
        ("rows", PromptStream(FakeRows(6), 1, True)),
        ("fingerprint", PromptStream(FakeRows(5, "other"), 1, True)),
        ("seed", PromptStream(FakeRows(5), 2, True)),
        ("shuffle", PromptStream(FakeRows(5), 1, False)),
    ],
)
def test_a_state_of_another_run_is_refused(key: str, stream: PromptStream) -> None:
    state = PromptStream(FakeRows(5), 1, True).state()
    with pytest.raises(DataError, match=f"{key} = ") as caught:
        stream.restore(state)
    assert caught.value.remedy
    assert stream.state()["offset"] == 0


@pytest.mark.parametrize("change", [{"offset": 6}, {"offset": None}, {"epoch": -1}, {"epoch": "1"}])
def test_a_damaged_state_is_refused(change: dict[str, object]) -> None:
    stream = PromptStream(FakeRows(5), 1, True)
    with pytest.raises(DataError, match="saved position"):
        stream.restore({**stream.state(), **change})


def test_no_rows_and_negative_numbers() -> None:
    with pytest.raises(DataError, match="no rows"):
        PromptStream(FakeRows(0), 0, True)
    with pytest.raises(ValueError, match="-1"):
        PromptStream(FakeRows(2), 0, True).next(-1)
