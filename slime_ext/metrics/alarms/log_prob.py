"""Trainer and engine disagree about the tokens that were sampled.

One design choice: the mean absolute difference, which both backends log; it is 0 on paper and a few
hundredths of a nat with bf16 kernels that sum in another order.
"""

from __future__ import annotations

from collections.abc import Sequence

from slime_ext.metrics.alarms.finding import Finding, Row
from slime_ext.metrics.alarms.series import newest_median, values
from slime_ext.recipe.alarm_section import AlarmRule


def log_prob(rows: Sequence[Row], rule: AlarmRule) -> Finding | None:
    """Holds where the median `train_rollout_logprob_abs_diff` of the window (nats) is above the
    threshold."""
    difference = newest_median(values(rows, "train_rollout_logprob_abs_diff"), rule.window)
    if difference is None or difference <= rule.threshold:
        return None
    return Finding(
        difference,
        f"trainer and rollout log-probs differ by {difference:.3g} nats (median of {rule.window} "
        f"steps), more than {rule.threshold:g}; compare temperature, rope scaling and weights of "
        "the two, or set loss.icepop",
    )
