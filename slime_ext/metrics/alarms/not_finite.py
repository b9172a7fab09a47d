"""A figure that is no number.

One design choice: a NaN is recorded as null, so null is what is looked for; what the host passes
along (`host/`) may be NaN for its own reasons and does not count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from slime_ext.metrics.alarms.finding import Finding, Row
from slime_ext.recipe.alarm_section import AlarmRule

SHOWN = 5


def not_finite(rows: Sequence[Row], rule: AlarmRule) -> Finding | None:
    """Holds where more than `threshold` figures of the newest `window` steps are not finite."""
    found = [
        key
        for row in rows[-rule.window :]
        for key, value in row.items()
        if not key.startswith("host/") and _broken(value)
    ]
    if len(found) <= rule.threshold:
        return None
    names = sorted(set(found))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return Finding(
        float(len(found)),
        f"not finite: {', '.join(names[:SHOWN])}{more}; go on from the last checkpoint with a "
        "smaller optimiser.lr",
    )


def _broken(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))
