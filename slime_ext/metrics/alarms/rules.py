"""The table of rules; the names are those of the [alarms] sub-tables."""

from __future__ import annotations

from slime_ext.metrics.alarms.entropy import entropy
from slime_ext.metrics.alarms.evidence import evidence
from slime_ext.metrics.alarms.finding import Rule
from slime_ext.metrics.alarms.length import length
from slime_ext.metrics.alarms.log_prob import log_prob
from slime_ext.metrics.alarms.no_verdict import no_verdict
from slime_ext.metrics.alarms.not_finite import not_finite
from slime_ext.metrics.alarms.reward import reward
from slime_ext.metrics.alarms.truncation import truncation
from slime_ext.metrics.alarms.zero_signal import zero_signal

RULES: dict[str, Rule] = {
    "truncation": truncation,
    "evidence": evidence,
    "reward": reward,
    "log_prob": log_prob,
    "entropy": entropy,
    "length": length,
    "no_verdict": no_verdict,
    "zero_signal": zero_signal,
    "not_finite": not_finite,
}
