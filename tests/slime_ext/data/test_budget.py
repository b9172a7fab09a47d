"""Token ids of a prompt; too many are refused, never cut."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from slime_ext.data.budget import PromptTooLong, prompt_ids
from slime_ext.data.render import render
from slime_ext.data.schema import parse_row


def _words(raw: dict[str, Any], name: str) -> int:
    return len(render(parse_row(raw), name)[0]["content"].split())


@pytest.mark.parametrize("name", ["numbered_chunks", "documents"])
def test_the_limit_is_exact(raw: dict[str, Any], tokenizer: Any, name: str) -> None:
    length = _words(raw, name) + 2
    row = parse_row(raw)
    ids = prompt_ids(row, name, tokenizer, {}, length)
    assert len(ids) == length
    assert all(type(token) is int for token in ids)
    with pytest.raises(PromptTooLong) as caught:
        prompt_ids(row, name, tokenizer, {}, length - 1)
    error = caught.value
    assert (error.row_id, error.length, error.limit) == ("q1", length, length - 1)
    assert all(part in str(error) for part in ("'q1'", str(length), str(length - 1), "skip"))


def test_template_arguments_reach_the_template(raw: dict[str, Any], tokenizer: Any) -> None:
    plain = prompt_ids(parse_row(raw), "documents", tokenizer, {}, 10_000)
    quiet = prompt_ids(parse_row(raw), "documents", tokenizer, {"quiet": True}, 10_000)
    assert len(quiet) == len(plain) + 1


def test_the_error_travels_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(PromptTooLong("q1", 9, 8)))
    assert (error.row_id, error.length, error.limit) == ("q1", 9, 8)
