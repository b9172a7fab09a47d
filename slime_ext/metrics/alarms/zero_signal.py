"""Almost no group teaches anything: all its rewards are alike.

One design choice: groups that the filter dropped count, else a run with a filter would look healthy
while it samples ten batches for one step.
"""

from __future__ import annotations

from collections.abc import Sequence

from slime_ext.metrics.alarms.finding import Finding, Row
from slime_ext.metrics.alarms.series import newest_median
from slime_ext.recipe.alarm_section import AlarmRule

DROPPED = ("host/groups_dropped", "host/rollout/dynamic_filter/drop_flat")
"""What the embedded loop and slime count; a row has one of them."""


def zero_signal(rows: Sequence[Row], rule: AlarmRule) -> Finding | None:
    """Holds where the median share of groups without an advantage is above the threshold."""
    shares = [zero_signal_share(row) for row in rows if row.get("advantage/groups")]
    share = newest_median(shares, rule.window)
    if share is None or share <= rule.threshold:
        return None
    return Finding(
        share,
        f"{share:.0%} of the groups have no signal (median of {rule.window} steps), more than "
        f"{rule.threshold:.0%}: prompts are too easy or too hard for this model; see "
        "group/all_right and group/all_wrong",
    )


def zero_signal_share(row: Row) -> float:
    """Share of the sampled groups whose advantages are all 0, of a row with `advantage/groups`."""
    dropped = sum(row.get(key) or 0.0 for key in DROPPED)
    flat = row.get("group/zero_advantage") or 0.0
    return float((flat + dropped) / (row["advantage/groups"] + dropped))
