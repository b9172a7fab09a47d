"""Bad rows are refused with the key and what to type instead."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from slime_ext.data.errors import DataError
from slime_ext.data.schema import Row, parse_row


def test_a_good_row_passes(raw: dict[str, Any]) -> None:
    row = parse_row(raw)
    assert [document.id for document in row.context] == ["a", "b", "c"]
    assert row.gold_entities == [["Ada Byrd", "A. Byrd"], ["Ur"]]


def _set(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(row: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        target: Any = row
        for part in parents:
            target = target[int(part) if part.isdigit() else part]
        target[int(last) if last.isdigit() else last] = value

    return change


BAD: list[tuple[Callable[[dict[str, Any]], Any], str, str]] = [
    (_set("anwser", "x"), "anwser", "did you mean 'answer'"),
    (_set("context.1.titel", "x"), "context[1].titel", "did you mean 'title'"),
    (_set("answer", 5), "answer", "valid string, got 5"),
    (_set("answer", " \n"), "answer", "blank"),
    (_set("answer", None), "answer", "got None"),
    (lambda row: row.pop("answer"), "answer", "required"),
    (_set("id", ""), "id", "blank"),
    (_set("question", ""), "question", "blank"),
    (_set("aliases", ["", "x"]), "aliases[0]", "blank"),
    (_set("context", []), "context", "neither"),
    (_set("messages", [{"role": "user", "content": "x"}]), "context", "both"),
    (_set("context.2.id", "a"), "context[2].id", "context[0]"),
    (_set("context.2.id", " "), "context[2].id", "blank"),
    (_set("context.0.text", 7), "context[0].text", "valid string"),
    (_set("gold_chunks", ["a", "z"]), "gold_chunks[1]", "'z'"),
    (_set("gold_spans.0.end", 999), "gold_spans[0].end", "beyond the 24 characters"),
    (_set("gold_spans.0.end", 25), "gold_spans[0].end", "beyond"),
    (_set("gold_spans.0.start", 23), "gold_spans[0]", "empty"),
    (_set("gold_spans.0.start", -1), "gold_spans[0].start", "greater than or equal to 0"),
    (_set("gold_spans.0.chunk", "z"), "gold_spans[0].chunk", "'z'"),
    (_set("gold_entities", [["Ur"], ["--", " "]]), "gold_entities[1]", "normalises to nothing"),
    (_set("gold_entities", [[]]), "gold_entities[0]", "without a name"),
    (_set("gold_entities", ["Ur"]), "gold_entities[0]", "valid list"),
]


@pytest.mark.parametrize(("change", "key", "words"), BAD)
def test_a_bad_row_names_its_key(
    raw: dict[str, Any], change: Callable[[dict[str, Any]], Any], key: str, words: str
) -> None:
    change(raw)
    with pytest.raises(DataError) as caught:
        parse_row(raw)
    assert caught.value.key == key
    assert words in str(caught.value)


@pytest.mark.parametrize(("end", "fits"), [(24, True), (25, False)])
def test_a_span_may_end_where_the_text_ends(raw: dict[str, Any], end: int, fits: bool) -> None:
    raw["gold_spans"][0]["end"] = end
    assert len(raw["context"][1]["text"]) == 24
    if fits:
        assert parse_row(raw).gold_spans[0].end == end
    else:
        with pytest.raises(DataError):
            parse_row(raw)


def test_an_alias_that_normalises_to_nothing_needs_a_usable_one_beside_it(
    raw: dict[str, Any],
) -> None:
    raw["gold_entities"] = [["***", "Ur"]]
    assert parse_row(raw).gold_entities == [["***", "Ur"]]


def test_numbers_and_strings_are_the_same_chunk_id(raw: dict[str, Any]) -> None:
    for number, document in enumerate(raw["context"]):
        document["id"] = number
    raw["gold_chunks"], raw["gold_spans"] = ["0", 1], [{"chunk": 1, "start": 0, "end": 3}]
    row = parse_row(raw)
    assert row.gold_chunks == ["0", "1"]
    assert row.gold_spans[0].chunk == "1"


@pytest.fixture
def rendered() -> dict[str, Any]:
    return {
        "id": "m",
        "question": "Why?",
        "messages": [{"role": "user", "content": "<CHUNK_3> because Why?"}],
        "answer": "because",
        "gold_chunks": ["CHUNK_3"],
    }


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (_set("gold_chunks", ["third"]), "gold_chunks[0]"),
        (_set("gold_spans", [{"chunk": "x", "start": 0, "end": 1}]), "gold_spans[0].chunk"),
        (_set("messages.0.role", "human"), "messages[0].role"),
        (_set("messages", [{"role": "assistant", "content": "x"}]), "messages[0].role"),
        (_set("metadata", {"chunk_texts": {"third": "x"}}), "metadata.chunk_texts"),
        (_set("metadata", {"chunk_texts": ["x"]}), "metadata.chunk_texts"),
    ],
)
def test_bad_rows_of_messages(rendered: dict[str, Any], change: Any, key: str) -> None:
    parse_row(copy.deepcopy(rendered))
    change(rendered)
    with pytest.raises(DataError) as caught:
        parse_row(rendered)
    assert caught.value.key == key


def test_more_problems_are_counted(raw: dict[str, Any]) -> None:
    raw["answer"], raw["question"] = 1, 2
    with pytest.raises(DataError, match="1 more in this row"):
        parse_row(raw)


def test_a_long_value_is_shown_short(raw: dict[str, Any]) -> None:
    raw["answer"] = ["x" * 100_000]
    with pytest.raises(DataError) as caught:
        parse_row(raw)
    assert len(str(caught.value)) < 300


def test_braces_in_a_message_survive(raw: dict[str, Any]) -> None:
    raw["gold_chunks"] = ["{key}"]
    with pytest.raises(DataError, match=r"'\{key\}'"):
        parse_row(raw)


def test_schema_names_are_those_of_the_methods() -> None:
    assert list(Row.model_fields) == [
        "id",
        "source",
        "question",
        "context",
        "messages",
        "answer",
        "aliases",
        "gold_entities",
        "gold_chunks",
        "gold_spans",
        "metadata",
    ]
