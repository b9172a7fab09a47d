"""Figures over steps: the newest of them, and how far their trend goes.

One design choice: the trend is Theil and Sen's median of pairwise slopes, which a few wild steps do
not move (it tolerates 29% of them), where a least-squares line would follow each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import median

from slime_ext.metrics.alarms.finding import Row


def values(rows: Sequence[Row], *keys: str) -> list[float]:
    """The finite values, row by row, of the first of `keys` that a row has."""
    found = (next((row[key] for key in keys if key in row), None) for row in rows)
    return [value for value in found if value is not None and math.isfinite(value)]


def newest_median(figures: Sequence[float], window: int) -> float | None:
    """Median of the newest `window` figures; None where there are fewer."""
    return median(figures[-window:]) if len(figures) >= window else None


def rise(figures: Sequence[float], window: int) -> float | None:
    """By how much the newest `window` figures rose along their trend; None where there are fewer.

    The median over all pairs of (later - sooner) / distance (Sen, 1968), times window - 1.
    """
    if len(figures) < max(2, window):
        return None
    pairs = combinations(enumerate(figures[-window:]), 2)
    slopes = [(later - sooner) / (j - i) for (i, sooner), (j, later) in pairs]
    return median(slopes) * (window - 1)
