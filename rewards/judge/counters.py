"""Counters of the judge layer: named sums that only grow.

One design choice: a lock of threads, not of a loop, because slime scores from several loops.
"""

from __future__ import annotations

import threading


class Counters:
    """Sums by name, safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[str, float] = {}

    def add(self, name: str, amount: float = 1.0) -> None:
        """Add `amount` >= 0 to the sum `name`."""
        with self._lock:
            self._sums[name] = self._sums.get(name, 0.0) + amount

    def raise_to(self, name: str, value: float) -> None:
        """Keep the largest `value` seen under `name`."""
        with self._lock:
            self._sums[name] = max(self._sums.get(name, 0.0), value)

    def read(self) -> dict[str, float]:
        """A copy of all sums."""
        with self._lock:
            return dict(self._sums)
