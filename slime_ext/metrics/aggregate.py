"""Metrics of one step or one evaluation, from scored samples.

One design choice: a rate is always over the samples it is defined for (a part over the samples that
have it, rewards over the determined ones), and the counts beside it say how many were left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from slime_ext.host.types import Sample
from slime_ext.metrics.sample_scores import score_of, undetermined_reasons

EPSILON = 1e-6


def rollout_metrics(samples: Sequence[Sample], counts: Mapping[str, int]) -> dict[str, float]:
    """Metrics of the samples of one training step (keys: slime_ext/metrics/names.py).

    `counts` are those of the advantage computation; samples must have been settled.
    """
    metrics = _common(samples)
    rewards = [r for s in samples if (r := s.metadata.get("combined")) is not None]
    metrics |= _mean({"reward": rewards})
    metrics |= _mean({f"part/{k}": v for k, v in _parts(samples, "combined_parts").items()})
    metrics |= _groups(samples)
    metrics |= {f"advantage/{name}": float(value) for name, value in counts.items()}
    trained = [s for s in samples if s.metadata.get("advantage", 0.0) != 0.0]
    metrics["trained_share"] = len(trained) / max(1, len(samples))
    return metrics


def eval_metrics(samples: Sequence[Sample]) -> dict[str, float]:
    """Metrics of one evaluation: the outcome alone decides `accuracy`."""
    metrics = _common(samples)
    metrics |= _mean({f"part/{k}": v for k, v in _stored_parts(samples).items()})
    return metrics


def _common(samples: Sequence[Sample]) -> dict[str, float]:
    total = max(1, len(samples))
    parts = _stored_parts(samples)
    metrics: dict[str, float] = {"samples": float(len(samples))}
    metrics |= _mean(
        {
            "accuracy": parts.get("outcome", []),
            "evidence_recall": parts.get("evidence_recall", []),
            "format": parts.get("format", []),
            "response_length": [float(s.response_length) for s in samples],
        }
    )
    status = Counter(s.status for s in samples)
    metrics["truncated_ratio"] = status[Sample.Status.TRUNCATED] / total
    lost = status[Sample.Status.ABORTED] + status[Sample.Status.FAILED]
    metrics["lost_ratio"] = lost / total
    metrics |= _reasons(samples, total)
    return metrics


def _reasons(samples: Sequence[Sample], total: int) -> dict[str, float]:
    """Shares of ill-formed responses by reason, and counts of undetermined ones by reason."""
    scores = [score_of(sample) for sample in samples]
    reasons = Counter(s.reason for s in scores if s.total is not None and s.reason)
    ill = {name: n for name, n in reasons.items() if name.startswith("ill_formed")}
    metrics = {"ill_formed_ratio": sum(ill.values()) / total}
    metrics |= {f"ill_formed/{name.partition(':')[2]}": n / total for name, n in ill.items()}
    undetermined = undetermined_reasons(samples)
    metrics["undetermined"] = float(sum(undetermined.values()))
    metrics |= {f"undetermined/{name}": float(n) for name, n in undetermined.items()}
    return metrics


def _groups(samples: Sequence[Sample]) -> dict[str, float]:
    """Composition of the groups: all right, mixed, all wrong, and flat in reward."""
    outcomes: dict[int | None, list[float]] = defaultdict(list)
    rewards: dict[int | None, list[float]] = defaultdict(list)
    for sample in samples:
        outcome = score_of(sample).parts.get("outcome")
        if outcome is not None:
            outcomes[sample.group_index].append(outcome)
        if (reward := sample.metadata.get("combined")) is not None:
            rewards[sample.group_index].append(reward)
    right = sum(min(values) > 0 for values in outcomes.values())
    wrong = sum(max(values) <= 0 for values in outcomes.values())
    return {
        "groups/all_right": float(right),
        "groups/all_wrong": float(wrong),
        "groups/mixed": float(len(outcomes) - right - wrong),
        "groups/flat": float(sum(max(v) - min(v) <= EPSILON for v in rewards.values())),
    }


def _stored_parts(samples: Iterable[Sample]) -> dict[str, list[float]]:
    parts: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        for name, value in score_of(sample).parts.items():
            parts[name].append(value)
    return parts


def _parts(samples: Iterable[Sample], key: str) -> dict[str, list[float]]:
    parts: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        for name, value in sample.metadata.get(key, {}).items():
            parts[name].append(value)
    return parts


def _mean(columns: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Means of the columns that have values; an empty column has no mean and is left out."""
    return {name: fmean(values) for name, values in columns.items() if values}
