"""Prompts: everything the reward speaks of is shown, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slime_ext.data.errors import DataError
from slime_ext.data.render import RENDERERS, render, renderer_for
from slime_ext.data.schema import parse_row
from slime_ext.data.task import marked_chunks, task_from_row

SOURCE = """
def good(row):
    return [{"role": "user", "content": row.question}]

def bad(row):
    return row.question

def empty(row):
    return []

value = 3
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "my_prompts.py").write_text(SOURCE)
    (tmp_path / "my_broken.py").write_text("import no_such_module_at_all")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "my_prompts"


def test_numbered_chunks_shows_the_numbers_of_the_task(raw: dict[str, Any]) -> None:
    row = parse_row(raw)
    (message,) = render(row, "numbered_chunks")
    assert message["role"] == "user"
    shown = marked_chunks([message["content"].split("\n\nQuestion:")[0]])
    for number, text in task_from_row(row).chunk_texts.items():
        assert shown[number].endswith(text)
    assert shown[1].startswith("Acme\n")
    assert message["content"].count("<useful_chunks>") == 1
    assert message["content"].index(row.question) > message["content"].index("Ursa is")


def test_documents_keeps_the_order_and_asks_last(raw: dict[str, Any]) -> None:
    raw["context"][1]["title"] = ""
    (message,) = render(parse_row(raw), "documents")
    content = message["content"]
    places = [content.index(document["text"]) for document in raw["context"]]
    assert places == sorted(places)
    assert "[Document 1: Acme]" in content
    assert "[Document 2]\n" in content
    assert content.endswith(raw["question"])
    assert "<answer>" in content


@pytest.mark.parametrize("name", ["numbered_chunks", "documents"])
def test_braces_and_markup_in_the_text_stay_as_they_are(raw: dict[str, Any], name: str) -> None:
    raw["context"][0]["text"] = odd = "{question} {0} %s <answer> \\n {{x}}"
    assert odd in render(parse_row(raw), name)[0]["content"]


def test_messages_are_passed_on(raw: dict[str, Any]) -> None:
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    changes = {"context": [], "messages": messages, "gold_chunks": [], "gold_spans": []}
    row = parse_row({**raw, **changes})
    assert render(row, "messages") == messages
    for name in ("numbered_chunks", "documents"):
        with pytest.raises(DataError, match='prompt = "messages"'):
            render(row, name)


def test_a_row_of_documents_has_no_messages(raw: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="numbered_chunks"):
        render(parse_row(raw), "messages")


def test_unknown_name_is_suggested() -> None:
    with pytest.raises(DataError, match="did you mean 'numbered_chunks'"):
        renderer_for("numbered_chunk")
    with pytest.raises(DataError, match="known: documents, messages, numbered_chunks"):
        renderer_for("zzz")
    assert set(RENDERERS) == {"numbered_chunks", "documents", "messages"}


def test_own_renderer(raw: dict[str, Any], module: str) -> None:
    row = parse_row(raw)
    assert render(row, f"{module}:good") == [{"role": "user", "content": row.question}]
    for name in ("bad", "empty"):
        with pytest.raises(DataError, match="return a list"):
            render(row, f"{module}:{name}")


def test_own_renderer_that_is_not_there(module: str) -> None:
    with pytest.raises(DataError, match="did you mean 'good'"):
        renderer_for(f"{module}:god")
    with pytest.raises(DataError, match="no function 'value'"):
        renderer_for(f"{module}:value")
    with pytest.raises(DataError, match="PYTHONPATH"):
        renderer_for("absent_package.module:f")
    # A module that is there and fails to import is the user's bug: show it as it is.
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        renderer_for("my_broken:f")
