"""Checks of a row that need more than one field, each naming the key and a remedy.

One design choice: plain functions over a finished row instead of field validators, because most of
them compare two fields (gold ids with the context, spans with their text).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rewards.folding import fold_words
from slime_ext.data.errors import row_problem
from slime_ext.data.numbering import CHUNK_TEXTS, chunk_number

if TYPE_CHECKING:
    from slime_ext.data.schema import Row


def check_text(row: Row) -> None:
    """Id, question, answer and every alias hold more than white space."""
    for key in ("id", "question", "answer"):
        if not getattr(row, key).strip():
            raise row_problem(key, "must not be blank", f"give the row its {key} or remove the row")
    for place, alias in enumerate(row.aliases):
        if not alias.strip():
            raise row_problem(f"aliases[{place}]", "must not be blank", "remove this alias")


def check_prompt(row: Row) -> None:
    """Exactly one of context and messages; unique document ids; a conversation that can go on."""
    if bool(row.context) == bool(row.messages):
        both = "holds both" if row.context else "holds neither"
        raise row_problem(
            "context",
            f"a row needs either context or messages, this one {both}",
            'give "context" (documents) or "messages" (a rendered prompt)',
        )
    first: dict[str, int] = {}
    for place, document in enumerate(row.context):
        if not document.id.strip():
            raise row_problem(f"context[{place}].id", "must not be blank", "give it an id")
        if document.id in first:
            raise row_problem(
                f"context[{place}].id",
                f"{document.id!r} is also the id of context[{first[document.id]}]",
                "make document ids unique within the row",
            )
        first[document.id] = place
    if row.messages and row.messages[-1].role == "assistant":
        raise row_problem(
            f"messages[{len(row.messages) - 1}].role",
            "the last message is the assistant's, nothing is left to answer",
            "end the prompt with the user's message",
        )


def check_chunks(row: Row) -> None:
    """Every gold chunk exists in the context, or is a chunk number where the prompt is rendered."""
    known = {document.id for document in row.context}
    for place, chunk in enumerate(row.gold_chunks):
        if row.context and chunk not in known:
            raise row_problem(
                f"gold_chunks[{place}]",
                f"no document of the context has the id {chunk!r}",
                f"use an id of the context: {_some(list(known))}",
            )
        if row.messages and chunk_number(chunk) is None:
            raise row_problem(
                f"gold_chunks[{place}]",
                f"{chunk!r} is no chunk number, and messages hold no document ids",
                'write the number as the prompt shows it, e.g. "CHUNK_12"',
            )


def check_chunk_texts(row: Row) -> None:
    """The texts that a row of messages brings along for its chunks go by chunk number."""
    given = row.metadata.get(CHUNK_TEXTS, {}) if row.messages else {}
    if not isinstance(given, dict):
        raise row_problem(f"metadata.{CHUNK_TEXTS}", "should be an object", '{"12": "text"}')
    for chunk, text in given.items():
        if chunk_number(chunk) is None or not isinstance(text, str):
            raise row_problem(
                f"metadata.{CHUNK_TEXTS}",
                f"should map chunk numbers to texts, not {chunk!r} to {type(text).__name__}",
                '{"12": "text of chunk 12"}',
            )


def check_spans(row: Row) -> None:
    """Every gold span lies inside the text of its document."""
    lengths = {document.id: len(document.text) for document in row.context}
    for place, span in enumerate(row.gold_spans):
        key = f"gold_spans[{place}]"
        if span.start >= span.end:
            raise row_problem(
                key,
                f"is empty: start {span.start}, end {span.end}",
                "end is exclusive and larger than start",
            )
        if row.messages and chunk_number(span.chunk) is None:
            raise row_problem(f"{key}.chunk", f"{span.chunk!r} is no chunk number", "e.g. CHUNK_12")
        if row.context and span.chunk not in lengths:
            raise row_problem(
                f"{key}.chunk",
                f"no document of the context has the id {span.chunk!r}",
                f"use an id of the context: {_some(list(lengths))}",
            )
        if row.context and span.end > lengths[span.chunk]:
            raise row_problem(
                f"{key}.end",
                f"{span.end} is beyond the {lengths[span.chunk]} characters of {span.chunk!r}",
                "offsets count characters of `text`, not bytes or tokens",
            )


def check_entities(row: Row) -> None:
    """Every entity has an alias of which normalisation leaves something to match."""
    for place, aliases in enumerate(row.gold_entities):
        if not aliases:
            raise row_problem(
                f"gold_entities[{place}]", "an entity without a name", "remove it or name it"
            )
        if not any(fold_words(alias) for alias in aliases):
            raise row_problem(
                f"gold_entities[{place}]",
                f"{aliases!r} normalises to nothing, no text could match it",
                "spell the entity in letters or digits, or remove it",
            )


def _some(ids: list[str], limit: int = 5) -> str:
    shown = ", ".join(sorted(ids)[:limit])
    return shown if len(ids) <= limit else f"{shown}, ... ({len(ids)} documents)"
