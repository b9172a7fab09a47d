"""Reading labelled rows: nothing is skipped in silence."""

from __future__ import annotations

import json

import pytest
from longrl_tools.judge_check.rows import read_rows

from slime_ext.errors import ExplainedError

GOOD = {"question": "q", "answer": "a", "candidate": "a", "label": "right"}


def write(path, lines):
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))
    return path


def test_bad_lines_are_counted_and_the_first_ones_named(tmp_path):
    bad = [
        "{not json",
        {**GOOD, "label": "maybe"},
        {**GOOD, "alias": []},
        {k: v for k, v in GOOD.items() if k != "candidate"},
        GOOD,
        "[]",
    ]
    read = read_rows(write(tmp_path / "rows.jsonl", [GOOD, "", *bad, {**GOOD, "candidate": ""}]))
    assert [row.candidate for row in read.rows] == ["a", ""]
    assert sum(read.skipped.values()) == 6
    assert read.skipped["not JSON"] == 1
    assert read.skipped["repeats a row"] == 1
    assert read.lines[0] == "line 3: not JSON"
    assert "label" in read.lines[1]
    assert "alias" in read.lines[2]
    assert "candidate" in read.lines[3]


def test_chunks_are_gold_and_numbered_from_1(tmp_path):
    row = {**GOOD, "aliases": ["b"], "chunks": ["one", "two"]}
    task = read_rows(write(tmp_path / "rows.jsonl", [row])).rows[0].task()
    assert task.answers == ("a", "b")
    assert task.chunk_texts == {1: "one", 2: "two"}
    assert task.gold_chunks == (1, 2)


def test_a_file_without_a_usable_row_is_an_error_that_shows_one(tmp_path):
    with pytest.raises(ExplainedError, match=r"line 1: not JSON.*\"label\""):
        read_rows(write(tmp_path / "rows.jsonl", ["?"]))
    with pytest.raises(ExplainedError, match="empty"):
        read_rows(write(tmp_path / "rows.jsonl", []))
