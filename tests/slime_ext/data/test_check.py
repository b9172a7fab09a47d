"""The scan of all rows goes on after bad ones and counts each row once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slime_ext.data.check import LISTED, CheckReport, check_rows
from slime_ext.data.errors import DataError
from slime_ext.data.schema import Row
from slime_ext.data.store import RowStore

Write = Callable[..., Path]


def _check(path: Path, tokenizer: Any, limit: int = 150, **changes: Any) -> CheckReport:
    settings: dict[str, Any] = {
        "prompt": "numbered_chunks",
        "tokenizer": tokenizer,
        "chat_template_kwargs": {},
        "max_prompt_tokens": limit,
        "needs": {"gold_chunks", "gold_entities"},
    }
    return check_rows(RowStore(path), **{**settings, **changes})


def test_each_trouble_is_counted(raw: dict[str, Any], write: Write, tokenizer: Any) -> None:
    long = [{"id": "a", "text": "word " * 200}, *raw["context"][1:]]
    rows = [
        raw,
        {**raw, "id": "long", "context": long},
        {**raw, "id": "no gold", "gold_chunks": [], "gold_entities": []},
        {**raw, "id": "no answer", "answer": ""},
        {**raw, "id": "lost chunk", "gold_chunks": ["z"]},
        # Too long and without gold: one row, one trouble.
        {**raw, "id": "both", "context": long, "gold_chunks": []},
    ]
    lines = [json.dumps(row) for row in rows] + ['{"id": "broken", nonsense}', "{}"]
    lines[-1] = json.dumps({**raw, "id": "last"})
    report = _check(write("\n".join(lines).encode()), tokenizer)
    assert report.positions == {
        "invalid": [3, 4, 6],
        "over_budget": [1, 5],
        "gold_outside": [],
        "missing_gold": [2],
    }
    assert (report.rows, report.ok) == (8, 2)
    assert (report.invalid, report.over_budget, report.missing_gold) == (3, 2, 1)
    assert [(name, trouble) for name, trouble, _ in report.offenders] == [
        ("long", "over_budget"),
        ("no gold", "missing_gold"),
        ("line 4", "invalid"),
        ("line 5", "invalid"),
        ("both", "over_budget"),
        ("line 7", "invalid"),
    ]
    text = "\n".join(report.lines())
    assert "8 rows: 2 ok, 2 over budget, 1 missing gold, 3 invalid" in text
    assert "gold_chunks, gold_entities" in text
    assert "rows.jsonl:4: answer: must not be blank" in text
    assert 0 < report.longest <= 150


def test_only_what_the_reward_needs_is_missed(
    raw: dict[str, Any], write: Write, tokenizer: Any
) -> None:
    path = write([{**raw, "gold_chunks": []}])
    assert _check(path, tokenizer).missing_gold == 1
    assert _check(path, tokenizer, needs=["gold_entities"]).ok == 1
    assert _check(path, tokenizer, needs=()).ok == 1


def test_the_list_is_short_and_says_so(raw: dict[str, Any], write: Write, tokenizer: Any) -> None:
    count = LISTED + 7
    report = _check(write([{**raw, "id": str(n)} for n in range(count)]), tokenizer, limit=1)
    assert report.over_budget == count
    assert len(report.offenders) == LISTED
    assert report.lines()[-1] == "  ... and 7 more"


def test_an_unknown_prompt_is_no_trouble_of_the_rows(
    raw: dict[str, Any], write: Write, tokenizer: Any
) -> None:
    with pytest.raises(DataError, match="unknown prompt"):
        _check(write([raw]), tokenizer, prompt="none such")


def first_document(row: Row) -> list[dict[str, str]]:
    """A renderer that leaves all but the first document out."""
    return [{"role": "user", "content": row.context[0].text}]


def test_gold_that_the_prompt_does_not_show_is_counted(
    raw: dict[str, Any], write: Write, tokenizer: Any
) -> None:
    rendered = {
        **{key: value for key, value in raw.items() if key not in ("context", "gold_spans")},
        "messages": [{"role": "user", "content": "<CHUNK_3> Ada Byrd was born in Ur. <CHUNK_4>"}],
    }
    rows = [
        {**rendered, "id": "shown", "gold_chunks": ["3", "<CHUNK_4>"]},
        {**rendered, "id": "cut", "gold_chunks": ["CHUNK_3", "CHUNK_40"]},
    ]
    report = _check(write(rows), tokenizer, prompt="messages")
    assert report.positions["gold_outside"] == [1]
    assert "1 ok, 0 over budget, 1 gold outside the prompt" in report.lines()[0]
    assert "cut: gold_outside: the prompt does not show CHUNK_40" in report.lines()[1]
    path = write([raw])
    assert _check(path, tokenizer).ok == 1
    own = _check(path, tokenizer, prompt=f"{__name__}:first_document")
    assert own.offenders == [("q1", "gold_outside", "the prompt does not show b")]
