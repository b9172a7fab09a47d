"""Labelled answers: one JSON object a line.

    {"question": ..., "answer": ..., "aliases": [...], "candidate": ..., "label": "right",
     "chunks": ["text of a gold chunk", ...]}

One design choice: a bad line is skipped, counted by reason and listed with its number, because a
comparison of judges is worth having without it and worthless if nobody knows it is missing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rewards.types import Task
from slime_ext.errors import ExplainedError

LISTED = 5
"""Skipped lines that a message names."""


class Row(BaseModel):
    """One answer and what people say of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: str = Field(min_length=1)
    answer: str = Field(min_length=1)
    aliases: tuple[str, ...] = ()
    candidate: str
    label: Literal["right", "wrong"]
    chunks: tuple[str, ...] = ()
    """Texts of the gold chunks, for protocols that show them."""
    id: str | None = None

    @property
    def right(self) -> bool:
        """Whether the label says right."""
        return self.label == "right"

    def task(self) -> Task:
        """The question as a judge gets it; chunks are numbered from 1."""
        texts = dict(enumerate(self.chunks, 1))
        return Task(
            id="",
            question=self.question,
            answer=self.answer,
            aliases=self.aliases,
            gold_chunks=tuple(texts),
            chunk_texts=texts,
        )


@dataclass(frozen=True, slots=True)
class Labelled:
    """The usable rows of a file, and what was skipped."""

    rows: list[Row]
    skipped: Counter[str] = field(default_factory=Counter)
    """Number of skipped lines by reason."""
    lines: list[str] = field(default_factory=list)
    """The first few of them as "line 3: reason"."""


def read_rows(path: Path) -> Labelled:
    """Read a file; a row that repeats another counts as skipped.

    Raises ExplainedError where no row is usable and FileNotFoundError where there is no file.
    """
    read = Labelled([])
    seen: set[Row] = set()
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            row = _parse(line)
            reason = row if isinstance(row, str) else "repeats a row" if row in seen else None
            if isinstance(row, Row) and reason is None:
                seen.add(row)
                read.rows.append(row)
            else:
                read.skipped[str(reason)] += 1
                if len(read.lines) < LISTED:
                    read.lines.append(f"line {number}: {reason}")
    if not read.rows:
        why = "; ".join(read.lines) or "it is empty"
        raise ExplainedError(
            f"{path}: no usable row ({why}); a row is "
            '{"question": ..., "answer": ..., "candidate": ..., "label": "right" or "wrong"}'
        )
    return read


def _parse(line: bytes) -> Row | str:
    """The row, or why there is none; field names but no contents."""
    try:
        return Row.model_validate(orjson.loads(line))
    except orjson.JSONDecodeError:
        return "not JSON"
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'row'}: {first['msg']}"
