"""Shortened rows keep all gold documents, in place, and are the same for the same seed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slime_ext.data.store import RowStore
from slime_ext.embedded.real.short import write_short_rows

MUSIQUE = Path(__file__).parents[5] / "shared" / "data" / "musique_60.jsonl"


def source(path: Path) -> Path:
    row = {
        "id": "q",
        "source": "s",
        "question": "?",
        "answer": "a",
        "context": [{"id": str(n), "title": f"t{n}", "text": f"text {n}"} for n in range(10)],
        "gold_chunks": ["8", "3"],
    }
    path.write_text(json.dumps(row) + "\n")
    return path


@pytest.mark.parametrize(("documents", "kept"), [(5, 5), (2, 2), (1, 2), (50, 10)])
def test_gold_stays_and_distractors_fill_up(tmp_path: Path, documents: int, kept: int) -> None:
    target = tmp_path / "out.jsonl"
    assert write_short_rows(source(tmp_path / "in.jsonl"), "longrl", target, documents, 0) == 1
    row = RowStore(target).row(0)
    numbers = [int(document.id) for document in row.context]
    assert len(numbers) == kept
    assert {3, 8} <= set(numbers)
    assert numbers == sorted(numbers)


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    texts = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        target = tmp_path / name
        write_short_rows(source(tmp_path / "in.jsonl"), "longrl", target, 5, seed)
        texts.append(target.read_text())
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.skipif(not MUSIQUE.is_file(), reason="shared/data is not beside this checkout")
def test_real_rows_keep_their_evidence(tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    assert write_short_rows(MUSIQUE, "musique", target, 6, 0) == 60
    for row in RowStore(target):
        assert len(row.context) == 6
        assert set(row.gold_chunks) <= {document.id for document in row.context}
