"""A fixed number of places for requests under way, shared by all event loops of a process.

One design choice: a lock of threads around a queue of futures, because asyncio.Semaphore belongs to
one loop and slime calls hooks from several; a place is handed to the next in line directly, so
that nobody can overtake between release and wake-up.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass


@dataclass(eq=False, slots=True)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    turn: asyncio.Future[None]
    granted: bool = False


class Places:
    """At most `limit` holders at a time."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        # Re-entrant: the garbage collector may end an abandoned task, and so release its place,
        # at any point.
        self._lock = threading.RLock()
        self._held = 0
        self._line: deque[_Waiter] = deque()

    @property
    def held(self) -> int:
        """Places taken now."""
        return self._held

    async def acquire(self, *, first: bool = False) -> None:
        """Wait for a place; `first` goes to the head of the line, as a request's retry does."""
        with self._lock:
            if self._held < self.limit:
                self._held += 1
                return
            loop = asyncio.get_running_loop()
            waiter = _Waiter(loop, loop.create_future())
            if first:
                self._line.appendleft(waiter)
            else:
                self._line.append(waiter)
        try:
            await waiter.turn
        except (asyncio.CancelledError, GeneratorExit):
            self._give_up(waiter)
            raise

    def release(self) -> None:
        """Hand the place to the next in line; callable from any thread."""
        with self._lock:
            self._pass_on()

    def _give_up(self, waiter: _Waiter) -> None:
        with self._lock:
            if waiter.granted:
                self._pass_on()
            elif waiter in self._line:
                self._line.remove(waiter)

    def _pass_on(self) -> None:
        while self._line:
            waiter = self._line.popleft()
            try:
                waiter.loop.call_soon_threadsafe(_wake, waiter.turn)
            except RuntimeError:  # its loop was closed with the task still waiting
                continue
            waiter.granted = True
            return
        self._held -= 1


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
