"""From a row to the task that rewards see: chunk numbers in place of ids.

One design choice: a task is built from the row alone, by the same numbering as the prompt, so a
response's `<CHUNK_n>` means the same chunk to renderer and reward.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rewards.types import Span, Task
from slime_ext.data.numbering import CHUNK_TEXTS, chunk_numbers, required_number
from slime_ext.data.schema import Row

_MARKER = re.compile(r"</?CHUNK_([0-9]{1,18})>")


def task_from_row(row: Row) -> Task:
    """The task of a row.

    Rows of documents: `chunk_texts` holds every document. Rows of messages: the gold chunks only,
    from `metadata["chunk_texts"]` or else from the prompt's own `<CHUNK_n>` markers.
    """
    if row.context:
        numbers = chunk_numbers(row)
        gold = _distinct(numbers[chunk] for chunk in row.gold_chunks)
        texts: dict[int, str] = {numbers[d.id]: d.text for d in row.context}
        spans = tuple(Span(numbers[s.chunk], s.start, s.end) for s in row.gold_spans)
    else:
        gold = _distinct(required_number(chunk) for chunk in row.gold_chunks)
        texts = _message_chunks(row, gold)
        spans = tuple(Span(required_number(s.chunk), s.start, s.end) for s in row.gold_spans)
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


def _message_chunks(row: Row, gold: tuple[int, ...]) -> dict[int, str]:
    given: Mapping[str, str] = row.metadata.get(CHUNK_TEXTS) or {}
    if given:
        return {required_number(chunk): text for chunk, text in given.items()}
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
