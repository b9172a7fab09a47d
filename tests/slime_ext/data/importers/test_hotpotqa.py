"""HotpotQA rows of both spellings: sentences become spans, titles entities."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slime_ext.data.errors import DataError
from slime_ext.data.importers import importer_for
from slime_ext.data.store import RowStore

OFFICIAL: dict[str, Any] = {
    "_id": "5a",
    "question": "If Gallu is a demon Lilu is what?",
    "answer": "a spirit",
    "supporting_facts": [["Alu", 2], ["Lilu (mythology)", 0]],
    "context": [
        ["Dice", ["Dice game.", " With dice."]],
        ["Lilu (mythology)", ["Lilu is a spirit."]],
        ["Alu", ["Alu is one.", "Like Gallu. ", " And Lilu."]],
    ],
    "type": "bridge",
    "level": "easy",
}
HUGGING_FACE: dict[str, Any] = {
    **{key: value for key, value in OFFICIAL.items() if key != "_id"},
    "id": "5a",
    "supporting_facts": {"title": ["Alu", "Lilu (mythology)"], "sent_id": [2, 0]},
    "context": {
        "title": [title for title, _ in OFFICIAL["context"]],
        "sentences": [sentences for _, sentences in OFFICIAL["context"]],
    },
}


@pytest.mark.parametrize("raw", [OFFICIAL, HUGGING_FACE])
def test_fields(raw: dict[str, Any]) -> None:
    row = importer_for("hotpotqa").row(raw, 1)
    assert row.id == "5a"
    assert [document.text for document in row.context] == [
        "Dice game. With dice.",
        "Lilu is a spirit.",
        "Alu is one. Like Gallu.  And Lilu.",
    ]
    assert row.gold_chunks == ["3", "2"]
    texts = {document.id: document.text for document in row.context}
    spans = [texts[span.chunk][span.start : span.end] for span in row.gold_spans]
    assert spans == ["And Lilu.", "Lilu is a spirit."]
    assert row.gold_entities == [["Alu"], ["Lilu (mythology)", "Lilu"], ["a spirit"]]
    assert row.metadata["missing_sentences"] == 0


@pytest.mark.parametrize(
    ("answer", "entities"), [("yes", 2), ("No", 2), ("LILU", 2), ("a spirit", 3)]
)
def test_an_answer_without_a_name_is_no_entity(answer: str, entities: int) -> None:
    row = importer_for("hotpotqa").row({**OFFICIAL, "answer": answer}, 1)
    assert len(row.gold_entities) == entities


def test_a_fact_beyond_its_paragraph_is_counted() -> None:
    raw = {**OFFICIAL, "supporting_facts": [["Alu", 3], ["Alu", 0]]}
    row = importer_for("hotpotqa").row(raw, 1)
    assert row.gold_chunks == ["3"]
    assert len(row.gold_spans) == 1
    assert row.metadata["missing_sentences"] == 1


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"supporting_facts": [["Nobody", 0]]}, "supporting_facts"),
        ({"supporting_facts": [["Alu"]]}, "supporting_facts[0]"),
        ({"context": [["Alu", "text"]]}, "context"),
        ({"context": {"title": ["Alu"], "sentences": []}}, "context"),
        ({"answer": None}, "answer"),
    ],
)
def test_bad_rows(change: dict[str, Any], key: str) -> None:
    with pytest.raises(DataError) as caught:
        importer_for("hotpotqa").row({**copy.deepcopy(OFFICIAL), **change}, 1)
    assert caught.value.key == key


def test_real_rows(shared: Callable[[str], Path], tmp_path: Path) -> None:
    store = RowStore(shared("hotpotqa_60.jsonl"), "hotpotqa", cache=tmp_path)
    rows = list(store)
    assert len(rows) == 60
    for position, row in enumerate(rows):
        assert len(row.context) == 10
        assert len(row.gold_chunks) == 2
        assert row.metadata["missing_sentences"] == 0
        assert store.position(row.id) == position
