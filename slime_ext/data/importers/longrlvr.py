"""LongRLVR's rows for verl: a rendered prompt, a ground truth, and reference chunks.

One design choice: the texts of the gold chunks travel in `metadata["chunk_texts"]` (by number),
because the answer judge of this method reads them and the prompt is one long string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slime_ext.data.errors import DataError
from slime_ext.data.importers.base import Importer, take


def fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Rows have no id: the reader names them by format and line."""
    chunks = take(raw, "extra_info.ref_chunks", list)
    texts = take(raw, "extra_info.ref_chunks_text", list, [])
    if texts and len(texts) != len(chunks):
        raise DataError(
            f"{len(texts)} texts for {len(chunks)} chunks",
            key="extra_info.ref_chunks_text",
            remedy="give one text for each of extra_info.ref_chunks",
        )
    return {
        "source": take(raw, "data_source", str),
        "question": take(raw, "extra_info.question", str),
        "messages": take(raw, "prompt", list),
        "answer": take(raw, "reward_model.ground_truth", str),
        "gold_chunks": chunks,
        "metadata": {"chunk_texts": {str(c): text for c, text in zip(chunks, texts, strict=False)}},
    }


LONGRLVR = Importer(
    "longrlvr",
    (),
    fields,
    {
        "source": "data_source",
        "question": "extra_info.question",
        "messages": "prompt",
        "context": "prompt",
        "answer": "reward_model.ground_truth",
        "gold_chunks": "extra_info.ref_chunks",
    },
)
