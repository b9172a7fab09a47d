"""Calls that are under way: whoever wants the same thing awaits the first one's result.

One design choice: what is shared is a `concurrent.futures.Future` behind a lock, not an asyncio
one, because the callers may live in different event loops on different threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class _AbandonedError(Exception):
    """The caller that led was cancelled before it had a result."""


class SingleFlight(Generic[T]):
    """At most one call a key at a time, in the whole process."""

    def __init__(self) -> None:
        # Re-entrant: the garbage collector may end an abandoned call at any point.
        self._lock = threading.RLock()
        self._under_way: dict[bytes, Future[T]] = {}

    async def run(self, key: bytes, call: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """The result of `call()`, or of an equal call under way; the flag says it was another's.

        Raises what `call` raises, in all callers. A first caller that is cancelled, or whose loop
        is torn down, hands over: one of those who wait calls in its place.
        """
        while True:
            with self._lock:
                future = self._under_way.get(key)
                if future is None:
                    mine = self._under_way[key] = Future()
            if future is None:
                return await self._lead(key, mine, call), False
            try:
                # Shielded: a waiter that is cancelled must not cancel the others' call.
                return await asyncio.shield(asyncio.wrap_future(future)), True
            except _AbandonedError:
                continue

    async def _lead(self, key: bytes, mine: Future[T], call: Callable[[], Awaitable[T]]) -> T:
        try:
            result = await call()
        except BaseException as error:
            self._forget(key)
            # A cancellation is this caller's own; any other failure is everybody's.
            mine.set_exception(error if isinstance(error, Exception) else _AbandonedError())
            raise
        self._forget(key)
        mine.set_result(result)
        return result

    def _forget(self, key: bytes) -> None:
        with self._lock:
            del self._under_way[key]
