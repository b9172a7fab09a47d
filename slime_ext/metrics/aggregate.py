"""Metrics of one step or one evaluation, from scored samples.

One design choice: a rate is always over the samples it is defined for (a part over the samples that
have it, rewards over the determined ones), and the counts beside it say how many were left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean

import numpy as np

from slime_ext.host.types import Sample
from slime_ext.metrics.sample_scores import score_of, undetermined_reasons

Metrics = dict[str, float]
_Measure = Callable[[Sequence[Sample]], Metrics]


def rollout_metrics(samples: Sequence[Sample], counts: Mapping[str, int]) -> Metrics:
    """Metrics of the samples of one training step (keys: slime_ext/metrics/names.py).

    `counts` are those of the advantage computation; samples must have been settled.
    """
    metrics = _by_source(samples, _train_metrics)
    return metrics | {f"advantage/{name}": float(value) for name, value in counts.items()}


def eval_metrics(samples: Sequence[Sample]) -> Metrics:
    """Metrics of one evaluation: `reward/outcome` is its accuracy."""
    return _by_source(samples, _common)


def _by_source(samples: Sequence[Sample], measure: _Measure) -> Metrics:
    """`measure` over all samples, and over each data source where there are several."""
    metrics = measure(samples)
    sources: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        sources[str(sample.metadata.get("source") or "unknown")].append(sample)
    if len(sources) > 1:
        for name, members in sorted(sources.items()):
            # A slash in a name would read as another level.
            prefix = f"source/{name.replace('/', '_')}/"
            metrics |= {prefix + key: value for key, value in measure(members).items()}
    return metrics


def _train_metrics(samples: Sequence[Sample]) -> Metrics:
    rewards = [r for s in samples if (r := s.metadata.get("combined")) is not None]
    parts = _columns(s.metadata.get("combined_parts", {}) for s in samples)
    trained = sum(s.metadata.get("advantage", 0.0) != 0.0 for s in samples)
    return (
        _common(samples)
        | _means({"reward/total": rewards})
        | _means({f"reward/{name}": values for name, values in parts.items()})
        | _groups(samples)
        | {"trained_share": trained / max(1, len(samples))}
    )


def _common(samples: Sequence[Sample]) -> Metrics:
    total = max(1, len(samples))
    parts = _columns(score_of(s).parts for s in samples)
    status = Counter(s.status for s in samples)
    lost = status[Sample.Status.ABORTED] + status[Sample.Status.FAILED]
    return (
        {"samples": float(len(samples))}
        | _means({f"reward/{name}": values for name, values in parts.items()})
        | _lengths(samples)
        | {
            "truncated_share": status[Sample.Status.TRUNCATED] / total,
            "lost_share": lost / total,
        }
        | _reasons(samples, total)
        | _cached(samples)
    )


def _lengths(samples: Sequence[Sample]) -> Metrics:
    """Length of responses, and of their thinking and content where they were told apart."""
    split = [s for s in samples if s.metadata.get("thinking_tokens") is not None]
    thinking = [s.metadata["thinking_tokens"] for s in split]
    columns = {
        "length": [s.response_length for s in samples],
        "length_thinking": thinking,
        "length_content": [s.response_length - n for s, n in zip(split, thinking, strict=True)],
    }
    metrics: Metrics = {}
    for name, values in columns.items():
        if values:
            middle, high = np.percentile(values, [50, 95])
            metrics |= {
                f"{name}/mean": fmean(values),
                f"{name}/p50": float(middle),
                f"{name}/p95": float(high),
                f"{name}/max": float(max(values)),
            }
    return metrics


def _reasons(samples: Sequence[Sample], total: int) -> Metrics:
    """Shares of ill-formed responses by reason, and counts of undetermined ones by reason."""
    scores = [score_of(sample) for sample in samples]
    reasons = Counter(s.reason for s in scores if s.total is not None and s.reason)
    ill = {name: n for name, n in reasons.items() if name.startswith("ill_formed")}
    metrics = {"ill_formed_share": sum(ill.values()) / total}
    metrics |= {f"ill_formed/{name.partition(':')[2]}": n / total for name, n in ill.items()}
    undetermined = undetermined_reasons(samples)
    metrics["undetermined"] = float(sum(undetermined.values()))
    return metrics | {f"undetermined/{name}": float(n) for name, n in undetermined.items()}


def _groups(samples: Sequence[Sample]) -> Metrics:
    """Composition of the groups by outcome, and how many of them teach nothing."""
    outcomes: dict[int | None, list[float]] = defaultdict(list)
    advantages: dict[int | None, list[float]] = defaultdict(list)
    for sample in samples:
        outcome = score_of(sample).parts.get("outcome")
        if outcome is not None:
            outcomes[sample.group_index].append(outcome)
        advantages[sample.group_index].append(sample.metadata.get("advantage", 0.0))
    right = sum(min(values) > 0 for values in outcomes.values())
    wrong = sum(max(values) <= 0 for values in outcomes.values())
    return {
        "group/all_right": float(right),
        "group/all_wrong": float(wrong),
        "group/mixed": float(len(outcomes) - right - wrong),
        "group/zero_advantage": float(sum(not any(values) for values in advantages.values())),
    }


def _cached(samples: Sequence[Sample]) -> Metrics:
    counted = [s.metadata for s in samples if s.metadata.get("cached_tokens") is not None]
    prompt = sum(meta["prompt_tokens"] for meta in counted)
    cached = sum(meta["cached_tokens"] for meta in counted)
    return {"cached_prompt_share": cached / prompt} if prompt else {}


def _columns(rows: Iterable[Mapping[str, float]]) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.items():
            columns[name].append(value)
    return columns


def _means(columns: Mapping[str, Sequence[float]]) -> Metrics:
    """Means of the columns that have values; an empty column has no mean and is left out."""
    return {name: fmean(values) for name, values in columns.items() if values}
