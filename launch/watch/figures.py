"""Which figures of a run are shown, in which order, and how each is written.

One design choice: a fixed order with what a person looks for first on top; a figure that a run does
not have takes no line, and every part of a reward has one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from launch.watch.read import Row
from slime_ext.metrics.alarms.no_verdict import no_verdict_share
from slime_ext.metrics.alarms.zero_signal import zero_signal_share

FIRST = ("reward/total", "reward/outcome", "reward/evidence_recall")
"""Before the other parts of the reward."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a figure a step, None where the step does not have it."""

    group: str
    label: str
    figures: list[float | None]
    form: Callable[[float], str]


def lines(rows: Sequence[Row]) -> list[Line]:
    """All lines of a run with these rows."""
    present = {key for row in rows[-50:] for key in row}
    parts = sorted(k for k in present if k.startswith("reward/") and k not in FIRST)
    found: list[Line] = []
    for key in (*(k for k in FIRST if k in present), *parts):
        found.append(Line("reward", key.removeprefix("reward/"), _column(rows, key), _decimal))
    for group, label, keys, form in _NAMED:
        named = next((key for key in keys if key in present), None)
        if named is not None:
            found.append(Line(group, label, _column(rows, named), form))
    groups = [row for row in rows if row.get("advantage/groups")]
    if groups:
        flat = [zero_signal_share(row) for row in groups]
        found.append(Line("rollout", "groups without signal", list(flat), _percent))
    if any(key.startswith("judge/") for key in present):
        shares: list[float | None] = [no_verdict_share(row) for row in rows]
        found.append(Line("judge", "without a verdict", shares, _percent))
    return sorted(found, key=lambda line: _GROUPS.index(line.group))


def _column(rows: Sequence[Row], key: str) -> list[float | None]:
    return [row.get(key) for row in rows]


def _decimal(value: float) -> str:
    return f"{value:.3f}"


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _short(value: float) -> str:
    return f"{value:.3g}"


def _seconds(value: float) -> str:
    return f"{value:.1f} s"


_GROUPS = ("reward", "rollout", "judge", "trainer")
_NAMED: tuple[tuple[str, str, tuple[str, ...], Callable[[float], str]], ...] = (
    ("rollout", "response tokens", ("length/mean",), _whole),
    ("rollout", "95% of them below", ("length/p95",), _whole),
    ("rollout", "thinking tokens", ("length_thinking/mean",), _whole),
    ("rollout", "truncated", ("truncated_share",), _percent),
    ("rollout", "ill-formed", ("ill_formed_share",), _percent),
    ("rollout", "lost to the engine", ("lost_share",), _percent),
    ("judge", "latency", ("judge/latency_mean_s",), _seconds),
    ("judge", "from the cache", ("judge/cache_hit_rate",), _percent),
    ("judge", "tried again", ("judge/retries",), _whole),
    ("trainer", "loss", ("loss",), _short),
    ("trainer", "entropy", ("entropy", "entropy_loss"), _short),
    ("trainer", "log-prob difference", ("train_rollout_logprob_abs_diff",), _short),
    ("trainer", "gradient norm", ("grad_norm",), _short),
    ("trainer", "learning rate", ("lr", "lr-pg_0"), _short),
    ("trainer", "tokens a second", ("perf/actor_train_tok_per_s",), _whole),
)


def throughput(rows: Sequence[Row], step_s: float | None) -> dict[str, str]:
    """What is made a second, by name, of the newest row and the seconds a step takes."""
    row: Any = rows[-1] if rows else {}
    facts: dict[str, str] = {}
    if step_s:
        facts["step"] = f"{step_s:.1f} s"
        if samples := row.get("samples"):
            facts["responses a second"] = _short(samples / step_s)
            if length := row.get("length/mean"):
                facts["response tokens a second"] = _whole(samples * length / step_s)
        if seconds := row.get("seconds"):
            facts["of a step in rollout"] = f"{min(1.0, seconds / step_s):.0%}"
    return facts
