"""A line of characters for a line of figures.

One design choice: from the lowest to the highest figure shown; a curve that stays flat is drawn
low, and the figures beside it say at what height.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = "_.-:=+*#"
"""For terminals without Unicode."""
WIDTH = 24


def sparkline(figures: Sequence[float | None], width: int = WIDTH, plain: bool = False) -> str:
    """`figures` as at most `width` characters, several to one by their mean; a gap where none is
    finite."""
    levels = PLAIN if plain else BLOCKS
    count = min(width, len(figures))
    cells = [
        _mean(figures[len(figures) * i // count : len(figures) * (i + 1) // count])
        for i in range(count)
    ]
    known = [cell for cell in cells if cell is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    scale = (len(levels) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if c is None else levels[round((c - low) * scale)] for c in cells)


def _mean(figures: Sequence[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None and math.isfinite(figure)]
    return fmean(known) if known else None
