"""The released rows of LongTraceRL: rendered messages, a label, and rubrics.

One design choice: the rubrics of `dataset_name == "longrlvr"` are chunk ids and become gold chunks;
all others are entity names and become gold entities of one alias each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slime_ext.data.importers.base import Importer, take

_EXTRA = "metadata.extra_reward_info"


def fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Rows have no id: the reader names them by format and line."""
    dataset = take(raw, f"{_EXTRA}.dataset_name", str)
    rubrics = take(raw, f"{_EXTRA}.rubrics", list)
    row: dict[str, Any] = {
        "source": take(raw, "source", str, dataset),
        "question": take(raw, f"{_EXTRA}.question", str),
        "messages": take(raw, "input_messages", list),
        "answer": take(raw, "label", str),
        "metadata": {"dataset_name": dataset},
    }
    if dataset == "longrlvr":
        row["gold_chunks"] = rubrics
    else:
        row["gold_entities"] = [[rubric] for rubric in rubrics]
    return row


LONGTRACERL = Importer(
    "longtracerl",
    (),
    fields,
    {
        "question": f"{_EXTRA}.question",
        "messages": "input_messages",
        "context": "input_messages",
        "answer": "label",
        "gold_entities": f"{_EXTRA}.rubrics",
        "gold_chunks": f"{_EXTRA}.rubrics",
    },
)
