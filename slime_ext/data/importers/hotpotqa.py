"""HotpotQA rows, as the official files write them or as the Hugging Face copy does.

One design choice: HotpotQA marks sentences, not entities. The sentences become gold spans, their
paragraphs gold chunks, and the titles of these paragraphs (Wikipedia entities) the gold entities,
followed by the answer unless it is yes or no.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from slime_ext.data.errors import DataError
from slime_ext.data.importers.base import Importer, take

_QUALIFIER = re.compile(r"\s*\([^()]*\)$")


def fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Paragraph k (from 1, order kept) has the id str(k); sentences are joined to its text.

    Supporting facts that name a sentence beyond the paragraph (the official files hold a few) leave
    the paragraph gold without a span and are counted in `metadata["missing_sentences"]`.
    """
    documents: list[dict[str, str]] = []
    starts: dict[str, tuple[str, list[tuple[int, int]]]] = {}
    for number, (title, sentences) in enumerate(_pairs(raw, "context", "sentences"), 1):
        text, offsets = _join(sentences)
        documents.append({"id": str(number), "title": title, "text": text})
        starts.setdefault(title, (str(number), offsets))
    chunks, spans, titles, missing = [], [], [], 0
    for title, sentence in _pairs(raw, "supporting_facts", "sent_id"):
        if title not in starts:
            raise DataError(
                f"no paragraph has the title {title!r}",
                key="supporting_facts",
                remedy="repair or remove the row",
            )
        chunk, offsets = starts[title]
        if chunk not in chunks:
            chunks.append(chunk)
            titles.append(title)
        known = isinstance(sentence, int) and 0 <= sentence < len(offsets)
        start, end = offsets[sentence] if known else (0, 0)
        if start < end:
            spans.append({"chunk": chunk, "start": start, "end": end})
        else:
            missing += 1
    answer = take(raw, "answer", str)
    return {
        "source": "hotpotqa",
        "question": take(raw, "question", str),
        "context": documents,
        "answer": answer,
        "gold_entities": _entities(titles, answer),
        "gold_chunks": chunks,
        "gold_spans": spans,
        "metadata": {
            "type": take(raw, "type", str, ""),
            "level": take(raw, "level", str, ""),
            "missing_sentences": missing,
        },
    }


def _pairs(raw: Mapping[str, Any], key: str, second: str) -> list[tuple[str, Any]]:
    """Pairs of title and value, from a list of pairs (official) or two columns (Hugging Face)."""
    if isinstance(raw.get(key), Mapping):
        titles, values = take(raw, f"{key}.title", list), take(raw, f"{key}.{second}", list)
        if len(titles) != len(values):
            raise DataError(f"{len(titles)} titles, {len(values)} of {second}", key=key)
        pairs = list(zip(titles, values, strict=True))
    else:
        pairs = take(raw, key, list)
    for place, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not isinstance(pair[0], str):
            raise DataError(
                f"should be [title, {second}]", key=f"{key}[{place}]", remedy="check data.format"
            )
    return [(title, value) for title, value in pairs]


def _join(sentences: Any) -> tuple[str, list[tuple[int, int]]]:
    """The paragraph's text, and the offsets [start, end) of each sentence without outer blanks."""
    if not isinstance(sentences, list) or not all(isinstance(s, str) for s in sentences):
        raise DataError("sentences should be strings", key="context", remedy="check data.format")
    text, offsets = "", []
    for sentence in sentences:
        if text and not text[-1].isspace() and not sentence[:1].isspace():
            text += " "
        start = len(text) + len(sentence) - len(sentence.lstrip())
        text += sentence
        offsets.append((start, max(start, len(text.rstrip()))))
    return text, offsets


def _entities(titles: list[str], answer: str) -> list[list[str]]:
    """Titles, each also without its qualifier ("Lilu (mythology)" is "Lilu"), then the answer."""
    names = [(title, _QUALIFIER.sub("", title) or title) for title in titles]
    entities = [list(dict.fromkeys(pair)) for pair in names]
    known = {name.casefold() for entity in entities for name in entity}
    if answer.casefold() not in known | {"yes", "no"}:
        entities.append([answer])
    return entities


HOTPOTQA = Importer("hotpotqa", ("_id", "id"), fields, {"gold_chunks": "supporting_facts"})
