"""How documents become the numbers n of `<CHUNK_n>`.

One design choice: ids that already are chunk numbers keep them (released data count from 0, the lab
leaves gaps), so the prompt, the gold ids and the response speak of the same numbers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from slime_ext.data.schema import Row

CHUNK_TEXTS = "chunk_texts"
"""Key of `Row.metadata` with the known chunks of a rendered prompt: {"12" or "CHUNK_12": text}."""

_NUMBER = re.compile(r"(?:CHUNK_)?([0-9]{1,18})")
_MARKED = re.compile(r"<CHUNK_([0-9]{1,18})>|(?:CHUNK_)?([0-9]{1,18})")


def chunk_number(chunk: str) -> int | None:
    """12 for "CHUNK_12", "<CHUNK_12>" and "12"; None for any other id."""
    match = _MARKED.fullmatch(chunk)
    return int(match[1] or match[2]) if match else None


def required_number(chunk: str) -> int:
    """The number of an id that the row schema accepted; raises ValueError for any other id."""
    number = chunk_number(chunk)
    if number is None:
        raise ValueError(f"{chunk!r} is no chunk number; write CHUNK_n")
    return number


def chunk_numbers(row: Row) -> dict[str, int]:
    """Number of each document id, in context order; empty for a row of `messages`.

    The ids' own numbers where every id is "CHUNK_n" or "n" and no number occurs twice; else 1, 2,
    3 and so on.
    """
    matches = [_NUMBER.fullmatch(document.id) for document in row.context]
    own = [int(match[1]) for match in matches if match]
    if len(own) == len(row.context) and len(set(own)) == len(own):
        return {document.id: number for document, number in zip(row.context, own, strict=True)}
    return {document.id: number for number, document in enumerate(row.context, 1)}
