"""The released rows of LongTraceRL and LongRLVR, made here in the same schema."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slime_ext.data.errors import DataError
from slime_ext.data.importers import importer_for
from slime_ext.data.render import render
from slime_ext.data.store import RowStore
from slime_ext.data.task import task_from_row

TRACE: dict[str, Any] = {
    "source": "kilt_walk",
    "input_messages": [{"role": "user", "content": "Docs ... Which city?"}],
    "label": "Ur",
    "metadata": {
        "extra_reward_info": {
            "dataset_name": "long_trace",
            "question": "Which city?",
            "rubrics": ["Ada Byrd", "Ur"],
        }
    },
}
TRACE_CHUNKS: dict[str, Any] = {
    **TRACE,
    "input_messages": [{"role": "user", "content": "<CHUNK_0> nil <CHUNK_1> Ur it is. Which?"}],
    "metadata": {
        "extra_reward_info": {"dataset_name": "longrlvr", "question": "Which?", "rubrics": [1, 1]}
    },
}
VERL: dict[str, Any] = {
    "prompt": [{"role": "user", "content": "<CHUNK_0> nil <CHUNK_1> Ur. Which?"}],
    "data_source": "books",
    "reward_model": {"style": "rule", "ground_truth": "Ur"},
    "extra_info": {"question": "Which?", "ref_chunks": [1], "ref_chunks_text": ["Ur."]},
}


def test_entities_of_longtracerl(write: Callable[..., Path]) -> None:
    store = RowStore(write([TRACE, TRACE]), "longtracerl")
    row = store.row(1)
    assert row.id == "longtracerl:2"
    assert store.position("longtracerl:2") == 1
    assert (row.source, row.question, row.answer) == ("kilt_walk", "Which city?", "Ur")
    assert row.gold_entities == [["Ada Byrd"], ["Ur"]]
    assert row.gold_chunks == []
    assert render(row, "messages") == TRACE["input_messages"]


def test_chunks_of_longtracerl() -> None:
    row = importer_for("longtracerl").row(TRACE_CHUNKS, 3)
    assert row.gold_entities == []
    task = task_from_row(row)
    assert task.id == "longtracerl:3"
    assert task.gold_chunks == (1,)
    assert task.chunk_texts == {1: "Ur it is. Which?"}


def test_longrlvr(write: Callable[..., Path]) -> None:
    row = RowStore(write([VERL]), "longrlvr").row(0)
    assert (row.id, row.source) == ("longrlvr:1", "books")
    task = task_from_row(row)
    assert (task.question, task.answer) == ("Which?", "Ur")
    assert task.gold_chunks == (1,)
    assert task.chunk_texts == {1: "Ur."}
    assert task.metadata == {"source": "books"}


def test_longrlvr_without_texts_reads_the_prompt() -> None:
    raw = copy.deepcopy(VERL)
    del raw["extra_info"]["ref_chunks_text"]
    assert task_from_row(importer_for("longrlvr").row(raw, 1)).chunk_texts == {1: "Ur. Which?"}


def _without(raw: dict[str, Any], path: str) -> dict[str, Any]:
    changed = copy.deepcopy(raw)
    *parents, last = path.split(".")
    target = changed
    for part in parents:
        target = target[part]
    del target[last]
    return changed


@pytest.mark.parametrize(
    ("format", "raw", "path"),
    [
        ("longtracerl", TRACE, "label"),
        ("longtracerl", TRACE, "input_messages"),
        ("longtracerl", TRACE, "metadata.extra_reward_info.question"),
        ("longtracerl", TRACE, "metadata.extra_reward_info.rubrics"),
        ("longtracerl", TRACE, "metadata.extra_reward_info.dataset_name"),
        ("longrlvr", VERL, "prompt"),
        ("longrlvr", VERL, "reward_model.ground_truth"),
        ("longrlvr", VERL, "extra_info.ref_chunks"),
        ("longrlvr", VERL, "extra_info.question"),
        ("longrlvr", VERL, "data_source"),
    ],
)
def test_a_missing_key_is_named_as_in_the_file(format: str, raw: dict[str, Any], path: str) -> None:
    with pytest.raises(DataError) as caught:
        importer_for(format).row(_without(raw, path), 1)
    assert caught.value.key == path


def test_a_bad_value_is_named_as_in_the_file() -> None:
    raw = copy.deepcopy(TRACE)
    raw["metadata"]["extra_reward_info"]["rubrics"] = ["Ur", "..."]
    with pytest.raises(DataError) as caught:
        importer_for("longtracerl").row(raw, 1)
    assert caught.value.key == "metadata.extra_reward_info.rubrics[1]"
    blank = {**TRACE, "label": " "}
    with pytest.raises(DataError) as caught:
        importer_for("longtracerl").row(blank, 1)
    assert caught.value.key == "label"


def test_texts_and_chunks_must_pair_up() -> None:
    raw = copy.deepcopy(VERL)
    raw["extra_info"]["ref_chunks_text"] = ["Ur.", "more"]
    with pytest.raises(DataError, match="2 texts for 1 chunks"):
        importer_for("longrlvr").row(raw, 1)


def test_the_line_is_in_the_message(write: Callable[..., Path]) -> None:
    path = write([VERL, {**VERL, "reward_model": {}}])
    with pytest.raises(DataError, match=r"rows\.jsonl:2: reward_model\.ground_truth"):
        RowStore(path, "longrlvr").row(1)
