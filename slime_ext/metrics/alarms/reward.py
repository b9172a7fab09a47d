"""The reward rises and the answers get worse: something in the reward is paid for itself.

One design choice: the outcome stands for what is wanted, because every reward has it as a part.
"""

from __future__ import annotations

from collections.abc import Sequence

from slime_ext.metrics.alarms.finding import Finding, Row
from slime_ext.metrics.alarms.series import rise, values
from slime_ext.recipe.alarm_section import AlarmRule


def reward(rows: Sequence[Row], rule: AlarmRule) -> Finding | None:
    """Holds where `reward/total` rose and `reward/outcome` fell over the window, each by more than
    the threshold; the value is the change of the outcome."""
    total = rise(values(rows, "reward/total"), rule.window)
    outcome = rise(values(rows, "reward/outcome"), rule.window)
    if total is None or outcome is None:
        return None
    if total <= rule.threshold or -outcome <= rule.threshold:
        return None
    return Finding(
        outcome,
        f"over {rule.window} steps the reward went {total:+.2f} while the outcome went "
        f"{outcome:+.2f}: read responses in rollouts/ for what is paid instead",
    )
