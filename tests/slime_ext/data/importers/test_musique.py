"""MuSiQue rows: hops become entities, supporting paragraphs gold chunks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slime_ext.data.errors import DataError
from slime_ext.data.importers import importer_for
from slime_ext.data.store import RowStore
from slime_ext.data.task import task_from_row

MADE: dict[str, Any] = {
    "id": "3hop__1_2_3",
    "paragraphs": [
        {"idx": 0, "title": "T0", "paragraph_text": "zero", "is_supporting": False},
        {"idx": 1, "title": "T1", "paragraph_text": "one", "is_supporting": True},
        {"idx": 2, "title": "T2", "paragraph_text": "two", "is_supporting": True},
    ],
    "question": "Who?",
    "question_decomposition": [
        {"id": 1, "question": "a", "answer": "Rome", "paragraph_support_idx": 1},
        {"id": 2, "question": "b", "answer": "rome", "paragraph_support_idx": 1},
        {"id": 3, "question": "c", "answer": "Hall", "paragraph_support_idx": 2},
    ],
    "answer": "G. S. Hall",
    "answer_aliases": ["Stanley Hall", "Hall"],
    "answerable": True,
}


def test_fields() -> None:
    row = importer_for("musique").row(MADE, 1)
    assert row.id == "3hop__1_2_3"
    assert row.gold_entities == [["Rome"], ["Hall", "G. S. Hall", "Stanley Hall"]]
    assert row.aliases == ["Stanley Hall", "Hall"]
    assert row.metadata == {"hops": 3}
    task = task_from_row(row)
    assert task.gold_chunks == (1, 2)
    assert task.chunk_texts == {0: "zero", 1: "one", 2: "two"}


def test_a_hop_that_is_the_answer_is_one_entity() -> None:
    raw = copy.deepcopy(MADE)
    raw["question_decomposition"][0]["answer"] = "stanley hall"
    row = importer_for("musique").row(raw, 1)
    assert row.gold_entities == [["rome"], ["Hall", "G. S. Hall", "Stanley Hall"]]


def test_unanswerable_rows_are_refused() -> None:
    with pytest.raises(DataError, match="answerable"):
        importer_for("musique").row({**MADE, "answerable": False}, 1)


@pytest.mark.parametrize("key", ["paragraphs", "question", "answer", "id"])
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(DataError) as caught:
        importer_for("musique").row({k: v for k, v in MADE.items() if k != key}, 1)
    assert caught.value.key == key


def test_real_rows(shared: Callable[[str], Path], tmp_path: Path) -> None:
    rows = list(RowStore(shared("musique_60.jsonl"), "musique", cache=tmp_path))
    assert len(rows) == 60
    for row in rows:
        task = task_from_row(row)
        assert len(task.gold_chunks) == row.metadata["hops"] == len(task.gold_entities)
        assert len(task.chunk_texts) == 20
        assert row.answer in task.gold_entities[-1]
