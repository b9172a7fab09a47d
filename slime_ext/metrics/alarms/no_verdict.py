"""The judge leaves too many answers undecided.

One design choice: a lower bound than the one at which a run waits (outcome.judge.
max_no_verdict_share, a tenth): this is the news before the outage.
"""

from __future__ import annotations

from collections.abc import Sequence

from slime_ext.metrics.alarms.finding import Finding, Row
from slime_ext.metrics.alarms.series import newest_median
from slime_ext.recipe.alarm_section import AlarmRule

PREFIX = "undetermined/no_verdict"


def no_verdict(rows: Sequence[Row], rule: AlarmRule) -> Finding | None:
    """Holds where the median share of `samples` that are undetermined for want of a verdict is
    above the threshold."""
    shares = [no_verdict_share(row) for row in rows if row.get("samples")]
    share = newest_median(shares, rule.window)
    if share is None or share <= rule.threshold:
        return None
    reasons = {
        key.removeprefix(PREFIX).removeprefix(":")
        for row in rows[-rule.window :]
        for key in row
        if key.startswith(PREFIX)
    }
    return Finding(
        share,
        f"{share:.1%} of the responses are without a verdict (median of {rule.window} steps), more "
        f"than {rule.threshold:.1%}; reasons: {', '.join(sorted(reasons))}",
    )


def no_verdict_share(row: Row) -> float:
    """Share of a step's responses that no judge decided; 0 without responses."""
    undecided = sum(value or 0.0 for key, value in row.items() if key.startswith(PREFIX))
    return float(undecided / row["samples"]) if row.get("samples") else 0.0
