"""The service's Prometheus metrics.

One design choice: a registry of its own for each service and a closed set of label values, so that
a reward that puts a task's id into a reason cannot fill a Prometheus server's memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from rewards.types import Score

PATHS = ("/evaluate", "/health", "/metrics")
MAX_REASONS = 64
"""Distinct reasons kept as labels; all further ones are "other"."""
_SECONDS = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """What is counted: requests, scores by verdict, undetermined scores by reason, durations."""

    def __init__(self, judge_counters: Callable[[], Mapping[str, float]]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_JudgeCounters(judge_counters))
        self._requests = Counter(
            "longrl_requests", "Requests answered", ["path", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "longrl_request_seconds",
            "Time from a request's arrival to its answer",
            ["path"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._verdicts = Counter(
            "longrl_verdicts", "Scores by the outcome in them", ["kind"], registry=self._registry
        )
        self._no_verdict = Counter(
            "longrl_no_verdict", "Undetermined scores", ["reason"], registry=self._registry
        )
        self._outstanding = Gauge(
            "longrl_outstanding", "Responses being scored or waiting", registry=self._registry
        )
        self._reasons: set[str] = set()

    def watch_outstanding(self, outstanding: Callable[[], float]) -> None:
        """Read the number of responses under way whenever metrics are asked for."""
        self._outstanding.set_function(outstanding)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count one request."""
        known = path if path in PATHS else "other"
        self._requests.labels(known, str(status)).inc()
        self._seconds.labels(known).observe(seconds)

    def scored(self, scores: Sequence[Score]) -> None:
        """Count the scores of one request."""
        for score in scores:
            self._verdicts.labels(verdict_kind(score)).inc()
            if score.total is None:
                self._no_verdict.labels(self._reason(score.reason or "unknown")).inc()

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self._registry)

    def _reason(self, reason: str) -> str:
        if reason not in self._reasons and len(self._reasons) >= MAX_REASONS:
            return "other"
        self._reasons.add(reason)
        return reason


def verdict_kind(score: Score) -> str:
    """ "right", "wrong" or "partial" by the part `outcome` (rewards without one: "scored"),
    "none" where the score is undetermined."""
    if score.total is None:
        return "none"
    outcome = score.parts.get("outcome")
    if outcome is None:
        return "scored"
    return {1.0: "right", 0.0: "wrong"}.get(outcome, "partial")


class _JudgeCounters(Collector):
    """The judge's own counters (requests, retries, tokens, cache hits, failures by reason)."""

    def __init__(self, counters: Callable[[], Mapping[str, float]]) -> None:
        self._counters = counters

    def collect(self) -> Iterable[CounterMetricFamily]:
        family = CounterMetricFamily("longrl_judge", "Counters of the judge", labels=["count"])
        for name, value in sorted(self._counters().items()):
            family.add_metric([name], value)
        yield family
