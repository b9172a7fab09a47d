"""Rows of a published data set with fewer distractors, so that they fit a small model's context.

One design choice: documents are left out before the prompt is built, never the end of a prompt
after it; every gold document stays, in its place and under its own number.
"""

from __future__ import annotations

import random
from pathlib import Path

import orjson

from slime_ext.data.schema import Row
from slime_ext.data.store import RowStore


def write_short_rows(source: Path, format: str, target: Path, documents: int, seed: int) -> int:
    """Write the rows of `source` to `target`, each with its gold documents and distractors drawn
    with `seed` up to `documents` in all; returns the number of rows.

    Raises DataError for a row of `source` that cannot be read.
    """
    store = RowStore(source, format)
    partial = target.with_suffix(".partial")
    with partial.open("wb") as file:
        for row in store:
            short = shorten(row, documents, random.Random(f"{seed}:{row.id}"))
            file.write(orjson.dumps(short.model_dump(), option=orjson.OPT_APPEND_NEWLINE))
    partial.replace(target)
    return len(store)


def shorten(row: Row, documents: int, rng: random.Random) -> Row:
    """The row with at most `documents` documents, or its gold ones where those are more."""
    gold = set(row.gold_chunks)
    others = [document.id for document in row.context if document.id not in gold]
    room = max(0, documents - len(gold))
    kept = gold | set(rng.sample(others, min(room, len(others))))
    context = [document for document in row.context if document.id in kept]
    return row.model_copy(update={"context": context})
