"""Lab problems as rows of the project's data schema.

One design choice: a row is a function of (seed, index, hops, size) with a random stream of its own,
so files stream to any length, a longer file starts with the shorter one, and train and evaluation
files made from different seeds share no document.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slime_ext.embedded.lab.task import DEFAULT_SIZE, GraphSize, make_problem

SOURCE = "lab"


def make_row(index: int, hops: int, seed: int, size: GraphSize = DEFAULT_SIZE) -> dict[str, Any]:
    """Row number `index` of the data set of `seed`: one document with one question.

    The question reads `ent3 rel1 rel7`: start there and follow the relations. `context` is in the
    order of the prompt; entity k of `gold_entities` is the object of hop k, answer last.
    Raises ValueError where graphs of `size` hold no walk of `hops`.
    """
    # A string seed: int seeds would make (seed, index) = (0, 1) and (1, 0) easy to confuse.
    rng = random.Random(f"{SOURCE}:{seed}:{index}")
    document, question = make_problem(rng, size, hops)
    return {
        "id": f"{SOURCE}-{hops}hop-seed{seed}-{index}",
        "source": SOURCE,
        "question": str(question),
        "context": [
            {"id": f"CHUNK_{fact.chunk}", "title": "", "text": fact.triple}
            for fact in document.facts
        ],
        "answer": question.answer,
        "aliases": [],
        "gold_entities": [[fact.object] for fact in question.path],
        "gold_chunks": [f"CHUNK_{fact.chunk}" for fact in question.path],
        "metadata": {"hops": hops},
    }


def make_rows(
    rows: int, hops: int, seed: int, size: GraphSize = DEFAULT_SIZE
) -> Iterator[dict[str, Any]]:
    """The first `rows` rows of the data set of `seed`."""
    for index in range(rows):
        yield make_row(index, hops, seed, size)


def write_rows(path: Path, rows: int, hops: int, seed: int, size: GraphSize = DEFAULT_SIZE) -> None:
    """Write `rows` rows to `path` as JSON Lines, under a temporary name until complete.

    Raises ValueError for a number of rows below 1 and for a size without walks of `hops`.
    """
    if rows < 1:
        raise ValueError(f"rows = {rows}; write 1 or more")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            for row in make_rows(rows, hops, seed, size):
                file.write(json.dumps(row) + "\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
