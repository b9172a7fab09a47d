"""A small share that tests change by field."""

from __future__ import annotations

from typing import Any

from launch.plan.measure.share import Share


def small(**changes: Any) -> Share:
    """One last-stage share of a dense model; `changes` replace its fields."""
    fields: dict[str, Any] = {
        "layers": 2,
        "hidden": 512,
        "heads": 2,
        "kv_heads": 1,
        "head_dim": 64,
        "ffn": 512,
        "vocab": 4096,
        "tokens": 2048,
        "tp": 2,
        "cp": 2,
        "shards": 4,
        "has_embedding": False,
        "has_head": True,
        "tied": False,
        "qk_norm": True,
        "qkv_bias": False,
        "sequence_parallel": True,
        "recompute": True,
        "in_flight": 2,
        "log_prob_chunk": 64,
        "chunked": True,
        "temperature": 1.0,
    }
    return Share(**{**fields, **changes})
