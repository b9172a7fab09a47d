"""Chunk ids: one spelling, order and repeats kept, no number too large."""

from hypothesis import given
from hypothesis import strategies as st

from rewards.parsing.chunk_ids import NO_CHUNK, chunk_ids


def test_only_the_one_spelling_counts():
    others = "<chunk_1> CHUNK_2 <CHUNK 4> <CHUNK_-5> <CHUNK_> <CHUNK_٣>"
    assert chunk_ids(f"<CHUNK_3>, <CHUNK_0>\n{others}<CHUNK_3>") == [3, 0, 3]


def test_huge_numbers_count_as_written_and_match_nothing():
    assert chunk_ids(f"<CHUNK_{'9' * 160_000}><CHUNK_1>") == [NO_CHUNK, 1]
    assert chunk_ids(f"<CHUNK_{'9' * 18}>") == [10**18 - 1]


@given(st.lists(st.integers(0, 10**6)), st.sampled_from([", ", "", "\n", " and "]))
def test_round_trip(ids, separator):
    assert chunk_ids(separator.join(f"<CHUNK_{n}>" for n in ids)) == ids


@given(st.lists(st.sampled_from(["<CHUNK_", "<", ">", "1", "_", "²", "x"])).map("".join))
def test_never_raises(text):
    assert len(chunk_ids(text)) <= text.count("<CHUNK_")
