"""The [alarms] section: what a run is told about before somebody looks at a chart.

One design choice: every rule has the same four keys, so that one sentence explains them all; what
its threshold counts is said at the rule. `window` steps must be there before a rule speaks, and
their median or trend is judged: one noisy step trips nothing (one NaN
does).
"""

from __future__ import annotations

from pydantic import Field

from slime_ext.recipe.section import Section


class AlarmRule(Section):
    """One rule."""

    on: bool = True
    threshold: float = Field(ge=0)
    window: int = Field(ge=1)
    """Newest steps that are judged together."""
    stop: bool = False
    """Save and stop the run while this alarm holds; it does not go back to the queue."""


class _Trend(AlarmRule):
    window: int = Field(default=30, ge=3)
    """A trend over fewer steps is mostly the luck of the prompts."""


class TruncationAlarm(AlarmRule):
    """More than this share of the responses is cut."""

    threshold: float = Field(default=0.5, ge=0, le=1)
    window: int = Field(default=3, ge=1)


class EvidenceAlarm(_Trend):
    """Over the window the outcome rose and the evidence recall fell by more than this, each."""

    threshold: float = Field(default=0.1, ge=0)


class RewardAlarm(_Trend):
    """Over the window the reward rose and the outcome fell by more than this, each."""

    threshold: float = Field(default=0.1, ge=0)


class LogProbAlarm(AlarmRule):
    """Trainer and rollout log-probs of the same tokens differ by more than this (nats, mean)."""

    threshold: float = Field(default=0.1, ge=0)
    window: int = Field(default=5, ge=1)


class EntropyAlarm(AlarmRule):
    """The entropy is below this share of what it was in the run's first `window` steps."""

    threshold: float = Field(default=0.1, ge=0, le=1)
    window: int = Field(default=10, ge=1)


class LengthAlarm(AlarmRule):
    """Responses are more than this many times as long as `window` steps ago."""

    threshold: float = Field(default=2.0, ge=1)
    window: int = Field(default=10, ge=1)


class NoVerdictAlarm(AlarmRule):
    """More than this share of the responses is without a verdict of the judge."""

    threshold: float = Field(default=0.05, ge=0, le=1)
    window: int = Field(default=5, ge=1)


class ZeroSignalAlarm(AlarmRule):
    """More than this share of the groups teaches nothing, those the filter dropped included."""

    threshold: float = Field(default=0.8, ge=0, le=1)
    window: int = Field(default=3, ge=1)


class NotFiniteAlarm(AlarmRule):
    """More than this many figures within the window are no finite numbers."""

    threshold: float = Field(default=0.0, ge=0)
    window: int = Field(default=5, ge=1)
    """More than one, as slime's trainer is heard a few steps late."""


class AlarmsSection(Section):
    """All rules; each may be changed when a run goes on."""

    on: bool = True
    """False looks at nothing."""
    truncation: TruncationAlarm = TruncationAlarm()
    evidence: EvidenceAlarm = EvidenceAlarm()
    reward: RewardAlarm = RewardAlarm()
    log_prob: LogProbAlarm = LogProbAlarm()
    entropy: EntropyAlarm = EntropyAlarm()
    length: LengthAlarm = LengthAlarm()
    no_verdict: NoVerdictAlarm = NoVerdictAlarm()
    zero_signal: ZeroSignalAlarm = ZeroSignalAlarm()
    not_finite: NotFiniteAlarm = NotFiniteAlarm()
