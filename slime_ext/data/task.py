"""From a row to the task that rewards see: chunk numbers in place of ids.

One design choice: a task is built from the row alone, by the same numbering as the prompt, so a
response's `<CHUNK_n>` means the same chunk to renderer and reward.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rewards.types import Span, Task
from slime_ext.data.errors import DataError
from slime_ext.data.numbering import chunk_number, chunk_numbers
from slime_ext.data.schema import Row

CHUNK_TEXTS = "chunk_texts"
"""Key of `Row.metadata` with the known chunks of a rendered prompt: {"12" or "CHUNK_12": text}."""

_MARKER = re.compile(r"</?CHUNK_([0-9]{1,18})>")


def task_from_row(row: Row) -> Task:
    """The task of a row; raises DataError for a gold id of rendered messages that has no number.

    Rows of documents: `chunk_texts` holds every document. Rows of messages: the gold chunks only,
    from `metadata["chunk_texts"]` or else from the prompt's own `<CHUNK_n>` markers.
    """
    if row.context:
        numbers = chunk_numbers(row)
        gold = _distinct(numbers[chunk] for chunk in row.gold_chunks)
        texts: dict[int, str] = {numbers[d.id]: d.text for d in row.context}
        spans = tuple(Span(numbers[s.chunk], s.start, s.end) for s in row.gold_spans)
    else:
        gold = _distinct(_number(row, chunk) for chunk in row.gold_chunks)
        texts = _message_chunks(row, gold)
        spans = tuple(Span(_number(row, s.chunk), s.start, s.end) for s in row.gold_spans)
    gold_ids = set(row.gold_chunks)
    return Task(
        id=row.id,
        question=row.question,
        answer=row.answer,
        aliases=tuple(row.aliases),
        gold_entities=tuple(tuple(aliases) for aliases in row.gold_entities),
        gold_chunks=gold,
        gold_spans=spans,
        chunk_texts=texts,
        distractor_titles=tuple(d.title for d in row.context if d.title and d.id not in gold_ids),
        metadata={
            **{key: value for key, value in row.metadata.items() if key != CHUNK_TEXTS},
            "source": row.source,
        },
    )


def _distinct(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(numbers))


def _number(row: Row, chunk: str) -> int:
    number = chunk_number(chunk)
    if number is None:
        raise DataError(
            f"row {row.id!r}: {chunk!r} is no chunk number",
            key="gold_chunks",
            remedy='write the number as the prompt shows it, e.g. "CHUNK_12"',
        )
    return number


def _message_chunks(row: Row, gold: tuple[int, ...]) -> dict[int, str]:
    given: Mapping[str, Any] = row.metadata.get(CHUNK_TEXTS) or {}
    if given:
        return {_number(row, chunk): str(text) for chunk, text in given.items()}
    shown = marked_chunks(message.content for message in row.messages)
    return {number: shown[number] for number in gold if number in shown}


def marked_chunks(texts: Iterable[str]) -> dict[int, str]:
    """Text between each `<CHUNK_n>` and the next marker, stripped; linear in the text.

    Of several occurrences of one marker the longest section counts: instructions name markers too,
    as examples.
    """
    chunks: dict[int, str] = {}
    for text in texts:
        markers = list(_MARKER.finditer(text))
        for place, marker in enumerate(markers):
            end = markers[place + 1].start() if place + 1 < len(markers) else len(text)
            section = text[marker.end() : end].strip()
            number = int(marker[1])
            if not marker[0].startswith("</") and len(section) > len(chunks.get(number, "")):
                chunks[number] = section
    return chunks
