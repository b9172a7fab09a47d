"""Who comes at the same time goes one after another: one caller each pass of the event loop.

One design choice: a burst is spread instead of queued. A thousand answers that arrive together
would all write their prompts before the first request leaves, and the requests would then leave,
return and be read in waves, with the places empty between two waves.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque


class Turns(threading.local):
    """A line for each event loop; callable from any."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._line: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for one's turn: the next pass of the loop, or as many passes as there are others."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            # A loop that ended took those who stood in its line with it.
            self._loop, self._line = loop, deque()
        turn: asyncio.Future[None] = loop.create_future()
        self._line.append(turn)
        if len(self._line) == 1:
            loop.call_soon(self._next, self._line)
        await turn

    def _next(self, line: deque[asyncio.Future[None]]) -> None:
        if not line[0].done():
            line[0].set_result(None)
        line.popleft()
        if line:
            asyncio.get_running_loop().call_soon(self._next, line)
