"""The policy has stopped to explore.

One design choice: measured against the run's own start, because a healthy entropy depends on model
and task (0.1 to 2 nats a token) and its ruin is the same everywhere: a small fraction is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from slime_ext.metrics.alarms.finding import Finding, Row
from slime_ext.metrics.alarms.series import values
from slime_ext.recipe.alarm_section import AlarmRule


def entropy(rows: Sequence[Row], rule: AlarmRule) -> Finding | None:
    """Holds where the median entropy of the window is below `threshold` times the median of the
    first `window` steps; slime's trainer names it `entropy_loss`. The value is that ratio."""
    figures = values(rows, "entropy", "entropy_loss")
    if len(figures) < 2 * rule.window:
        return None
    first, now = median(figures[: rule.window]), median(figures[-rule.window :])
    if now >= rule.threshold * first:
        return None
    return Finding(
        now / first,
        f"entropy is {now:.3g} nats a token (median of {rule.window} steps), {now / first:.1%} of "
        f"the {first:.3g} at the start, less than {rule.threshold:.0%}; raise loss.clip_high or "
        "lower optimiser.lr",
    )
