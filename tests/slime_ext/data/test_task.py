"""Chunk numbers, and what a reward gets to know."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.types import Span
from slime_ext.data.numbering import chunk_number, chunk_numbers
from slime_ext.data.schema import parse_row
from slime_ext.data.task import marked_chunks, task_from_row


def _with_ids(raw: dict[str, Any], ids: list[str]) -> dict[str, int]:
    context = [{"id": identity, "text": "t"} for identity in ids]
    row = parse_row({**raw, "context": context, "gold_chunks": [], "gold_spans": []})
    return chunk_numbers(row)


@pytest.mark.parametrize(
    ("ids", "numbers"),
    [
        (["0", "1", "2"], [0, 1, 2]),
        (["CHUNK_7", "CHUNK_3"], [7, 3]),
        (["CHUNK_7", "3"], [7, 3]),
        (["7", "CHUNK_7"], [1, 2]),
        (["7", "07"], [1, 2]),
        (["5", "x"], [1, 2]),
        (["b", "a"], [1, 2]),
        (["chunk_5", "6"], [1, 2]),
        (["CHUNK_5 ", "6"], [1, 2]),
        (["-5", "6"], [1, 2]),
    ],
)
def test_own_numbers_are_kept_where_all_have_one(
    raw: dict[str, Any], ids: list[str], numbers: list[int]
) -> None:
    assert list(_with_ids(raw, ids).values()) == numbers


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("CHUNK_12", 12),
        ("<CHUNK_12>", 12),
        ("12", 12),
        ("0", 0),
        ("<CHUNK_12", None),
        ("12>", None),
        ("<12>", None),
        ("chunk 12", None),
        ("", None),
        ("\u0661\u0662", None),
    ],
)
def test_chunk_number(text: str, number: int | None) -> None:
    assert chunk_number(text) == number


def test_task_of_documents(raw: dict[str, Any]) -> None:
    raw["gold_chunks"] = ["b", "a", "b"]
    task = task_from_row(parse_row(raw))
    assert task.id == "q1"
    assert task.answers == ("Ur", "Uruk-Ur")
    assert task.gold_entities == (("Ada Byrd", "A. Byrd"), ("Ur",))
    assert task.gold_chunks == (2, 1)
    assert task.gold_spans == (Span(2, 0, 23),)
    assert task.chunk_texts[2][0:23] == "Ada Byrd was born in Ur"
    assert set(task.chunk_texts) == {1, 2, 3}
    assert task.distractor_titles == ("Ursa",)
    assert task.metadata == {"hops": 2, "source": "made"}


def _messages(raw: dict[str, Any], content: str, **changes: Any) -> Any:
    messages = [{"role": "user", "content": content}]
    row = {**raw, "context": [], "messages": messages, "gold_chunks": [], "gold_spans": []}
    return parse_row({**row, **changes})


@pytest.mark.parametrize("gold", [["CHUNK_12"], ["<CHUNK_12>"], [12], ["12", "CHUNK_12"]])
def test_gold_chunks_of_messages(raw: dict[str, Any], gold: list[Any]) -> None:
    assert task_from_row(_messages(raw, "x", gold_chunks=gold)).gold_chunks == (12,)


def test_chunk_texts_of_messages_come_from_the_prompt(raw: dict[str, Any]) -> None:
    prompt = (
        "List chunks such as <CHUNK_2>, <CHUNK_3>.\n<CHUNK_2>\ntwo\n<CHUNK_3> three </CHUNK_3>\n"
        "<CHUNK_4>four\n\nQuestion: why?"
    )
    task = task_from_row(_messages(raw, prompt, gold_chunks=[2, 3, 9]))
    assert task.chunk_texts == {2: "two", 3: "three"}
    assert task.gold_chunks == (2, 3, 9)


def test_chunk_texts_of_messages_may_be_given(raw: dict[str, Any]) -> None:
    metadata = {"chunk_texts": {"CHUNK_2": "given"}, "hops": 1}
    row = _messages(raw, "<CHUNK_2> shown", gold_chunks=[2], metadata=metadata)
    task = task_from_row(row)
    assert task.chunk_texts == {2: "given"}
    assert task.metadata == {"hops": 1, "source": "made"}


@given(
    st.dictionaries(st.integers(0, 99), st.text("ab <>\n", max_size=20).map(str.strip), max_size=8)
)
def test_marked_chunks_reads_back_what_was_marked(chunks: dict[int, str]) -> None:
    text = "\n".join(f"<CHUNK_{number}> {body}" for number, body in chunks.items())
    assert marked_chunks([text]) == {n: body for n, body in chunks.items() if body}
