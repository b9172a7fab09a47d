"""MuSiQue rows, in the field names of the official files.

One design choice: the hop answers are the gold entities, because they are what a reasoning chain
has to name; the last hop's entity also takes the aliases of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slime_ext.data.errors import DataError
from slime_ext.data.importers.base import Importer, take


def fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Paragraphs keep their order and get their `idx` as id; supporting ones are gold chunks."""
    if not take(raw, "answerable", bool, True):
        raise DataError(
            "the question has no answer in its paragraphs",
            key="answerable",
            remedy="use the file of answerable questions, or filter on this key",
        )
    context, gold = [], []
    for paragraph in take(raw, "paragraphs", list):
        number = str(take(paragraph, "idx", int))
        context.append(
            {
                "id": number,
                "title": take(paragraph, "title", str, ""),
                "text": take(paragraph, "paragraph_text", str),
            }
        )
        if take(paragraph, "is_supporting", bool, False):
            gold.append(number)
    answer = take(raw, "answer", str)
    aliases = take(raw, "answer_aliases", list, [])
    hops = take(raw, "question_decomposition", list, [])
    return {
        "source": "musique",
        "question": take(raw, "question", str),
        "context": context,
        "answer": answer,
        "aliases": aliases,
        "gold_entities": _entities([take(hop, "answer", str) for hop in hops], answer, aliases),
        "gold_chunks": gold,
        "metadata": {"hops": len(hops)},
    }


def _entities(hop_answers: list[str], answer: str, aliases: list[str]) -> list[list[str]]:
    """One entity for each different hop answer, in hop order; the last takes all aliases."""
    if not hop_answers:
        return []
    last = list(dict.fromkeys([hop_answers[-1], answer, *aliases]))
    entities: dict[str, list[str]] = {}
    for name in hop_answers[:-1]:
        entities.setdefault(name.casefold(), [name])
    for name in last:
        # A hop answer that is the final answer by another spelling is the same entity.
        entities.pop(name.casefold(), None)
    return [*entities.values(), last]


MUSIQUE = Importer(
    "musique",
    ("id",),
    fields,
    {
        "context": "paragraphs",
        "aliases": "answer_aliases",
        "gold_entities": "question_decomposition",
        "gold_chunks": "paragraphs",
    },
)
