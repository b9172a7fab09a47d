"""Rows of `rollouts/step_N.jsonl.zst`: what was said, how it was scored, what was learned from it.

One design choice: prompts are named by row and id; a 128K prompt would be stored G times a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from slime_ext.host.types import Sample


def rollout_rows(samples: Sequence[Sample]) -> Iterator[dict[str, Any]]:
    """One JSON object a sample, in order."""
    for sample in samples:
        meta = sample.metadata
        yield {
            "id": meta.get("id"),
            "row": meta.get("row"),
            "group": sample.group_index,
            "index": sample.index,
            "rollout": getattr(sample, "rollout_id", None),
            "status": sample.status.value,
            "finish": meta.get("finish"),
            "response": sample.response,
            "response_length": sample.response_length,
            "reward": meta.get("combined"),
            "parts": meta.get("combined_parts", {}),
            "reason": (meta.get("score") or {}).get("reason"),
            "advantage": meta.get("advantage"),
            "trained": not sample.remove_sample,
            "weight_versions": sample.weight_versions,
        }
