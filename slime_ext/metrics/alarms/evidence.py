"""The model answers better and shows less of what it answers from.

One design choice: both trends must pass the threshold; evidence that falls together with the
outcome is a worse model, not this.
"""

from __future__ import annotations

from collections.abc import Sequence

from slime_ext.metrics.alarms.finding import Finding, Row
from slime_ext.metrics.alarms.series import rise, values
from slime_ext.recipe.alarm_section import AlarmRule


def evidence(rows: Sequence[Row], rule: AlarmRule) -> Finding | None:
    """Holds where `reward/outcome` rose and `reward/evidence_recall` fell over the window, each by
    more than the threshold; the value is the change of the recall."""
    outcome = rise(values(rows, "reward/outcome"), rule.window)
    recall = rise(values(rows, "reward/evidence_recall"), rule.window)
    if outcome is None or recall is None:
        return None
    if outcome <= rule.threshold or -recall <= rule.threshold:
        return None
    return Finding(
        recall,
        f"over {rule.window} steps evidence recall went {recall:+.2f} while the outcome went "
        f"{outcome:+.2f}: answers come from elsewhere; weigh the evidence more in [reward]",
    )
