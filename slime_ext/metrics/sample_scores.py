"""A sample's score, kept in its metadata.

One design choice: plain values under one key, because hosts copy, pickle and dump samples and know
nothing of our types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rewards.types import Score
from slime_ext.host.types import Sample

KEY = "score"
NOT_SCORED = "not_scored"
"""Reason of a sample that no reward was asked about."""


def remember_score(sample: Sample, score: Score) -> None:
    """Store `score` in the sample, and under `reward_status` "ok" or why it is undetermined."""
    sample.metadata[KEY] = {
        "total": score.total,
        "parts": dict(score.parts),
        "reason": score.reason,
    }
    sample.metadata["reward_status"] = "ok" if score.total is not None else score.reason


def score_of(sample: Sample) -> Score:
    """The remembered score; undetermined where there is none."""
    stored = sample.metadata.get(KEY)
    if stored is None:
        return Score(total=None, reason=lost_reason(sample) or NOT_SCORED)
    return Score(total=stored["total"], parts=stored["parts"], reason=stored["reason"])


def lost_reason(sample: Sample) -> str | None:
    """Why a sample has no whole response ("aborted:engine_gone", "failed:http_500"), or None."""
    if sample.status not in (Sample.Status.ABORTED, Sample.Status.FAILED):
        return None
    finish = sample.metadata.get("finish")
    return f"{sample.status.value}:{finish}" if finish else sample.status.value


def undetermined_reasons(samples: Sequence[Sample]) -> Counter[str]:
    """How many samples have no reward, by reason."""
    scores = [score_of(sample) for sample in samples]
    return Counter(score.reason or "unknown" for score in scores if score.total is None)
