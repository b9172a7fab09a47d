"""A clock that only moves when somebody waits on it.

One design choice: a wait still yields to the event loop, so that other tasks run in its place.
"""

from __future__ import annotations

import asyncio


class FakeTime:
    """`clock` and `sleep` for code that takes both; `waits` holds every wait asked for."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)
