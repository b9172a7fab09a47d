"""Responses become longer faster than learning explains.

One design choice: compared with the window before, not with the start: reasoning models grow for
hundreds of steps and should, while a blow-up doubles within a few.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from slime_ext.metrics.alarms.finding import Finding, Row
from slime_ext.metrics.alarms.series import values
from slime_ext.recipe.alarm_section import AlarmRule


def length(rows: Sequence[Row], rule: AlarmRule) -> Finding | None:
    """Holds where the median `length/mean` (tokens) of the window is more than `threshold` times
    that of the window before it; the value is that ratio."""
    figures = values(rows, "length/mean")
    if len(figures) < 2 * rule.window:
        return None
    before = median(figures[-2 * rule.window : -rule.window])
    now = median(figures[-rule.window :])
    if now <= rule.threshold * before:
        return None
    ratio = now / max(before, 1.0)
    return Finding(
        ratio,
        f"responses have {now:.0f} tokens, {ratio:.1f} times the {before:.0f} of {rule.window} "
        f"steps ago, more than {rule.threshold:g} times; read some in rollouts/ for repetition",
    )
