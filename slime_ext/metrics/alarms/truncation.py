"""Too many responses are cut by the response or context limit.

One design choice: the share is of all responses, lost ones included, as in the metric itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from slime_ext.metrics.alarms.finding import Finding, Row
from slime_ext.metrics.alarms.series import newest_median, values
from slime_ext.recipe.alarm_section import AlarmRule


def truncation(rows: Sequence[Row], rule: AlarmRule) -> Finding | None:
    """Holds where the median `truncated_share` of the window is above the threshold."""
    share = newest_median(values(rows, "truncated_share"), rule.window)
    if share is None or share <= rule.threshold:
        return None
    return Finding(
        share,
        f"{share:.0%} of the responses are cut (median of {rule.window} steps), more than "
        f"{rule.threshold:.0%}; raise rollout.max_response_tokens, or see whether responses end",
    )
