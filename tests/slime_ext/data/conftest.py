"""Rows, files and a word-level tokenizer for the tests of slime_ext.data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture
def raw() -> dict[str, Any]:
    """A valid row in the project's own schema; change a copy of it to make it bad."""
    return {
        "id": "q1",
        "source": "made",
        "question": "Where was the founder of Acme born?",
        "context": [
            {"id": "a", "title": "Acme", "text": "Acme was founded by Ada Byrd."},
            {"id": "b", "title": "Ada Byrd", "text": "Ada Byrd was born in Ur."},
            {"id": "c", "title": "Ursa", "text": "Ursa is a constellation."},
        ],
        "answer": "Ur",
        "aliases": ["Uruk-Ur"],
        "gold_entities": [["Ada Byrd", "A. Byrd"], ["Ur"]],
        "gold_chunks": ["a", "b"],
        "gold_spans": [{"chunk": "b", "start": 0, "end": 23}],
        "metadata": {"hops": 2},
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """write(rows) -> path of a JSONL file; a bytes argument is written as it is."""

    def write_file(content: list[dict[str, Any]] | bytes, name: str = "rows.jsonl") -> Path:
        path = tmp_path / name
        if not isinstance(content, bytes):
            content = b"".join(json.dumps(row).encode() + b"\n" for row in content)
        path.write_bytes(content)
        return path

    return write_file


@pytest.fixture
def shared() -> Callable[[str], Path]:
    """Path of a real data file; skips where the folder is absent."""

    def find(name: str) -> Path:
        if not (SHARED / name).is_file():
            pytest.skip(f"no real data: {SHARED / name} is absent")
        return SHARED / name

    return find


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """One token for each word; the template adds `<user>` and `<assistant>`, or `<quiet>`."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]")
    made.chat_template = (
        "{% for m in messages %}<{{ m.role }}> {{ m.content }} {% endfor %}"
        "{% if add_generation_prompt %}{{ '<quiet> ' if quiet else '' }}<assistant>{% endif %}"
    )
    return made
