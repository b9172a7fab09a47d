"""Values kept for reuse up to a total weight, the one used longest ago dropped first.

One design choice: the bound is on what the values weigh, not on their number, because a prompt may
have 200 tokens or 200,000.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Kept(Generic[Key, Value]):
    """A cache of values up to `limit` in total; a value heavier than that is kept alone."""

    def __init__(self, limit: int, weigh: Callable[[Value], int]) -> None:
        self._limit = limit
        self._weigh = weigh
        self._weight = 0
        self._values: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value, now the one used last; None where it is not kept."""
        if key in self._values:
            self._values.move_to_end(key)
        return self._values.get(key)

    def put(self, key: Key, value: Value) -> Value:
        """Keep `value` under a new key, and return it."""
        self._values[key] = value
        self._weight += self._weigh(value)
        while self._weight > self._limit and len(self._values) > 1:
            self._weight -= self._weigh(self._values.popitem(last=False)[1])
        return value
