"""Keeps the rollout engine alive: a lost engine is started again with the newest weights.

One design choice: requests are not told. Their client waits and repeats them with the same seed, so
a killed engine costs seconds and changes no sample; every restart is an event in the run's records.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from slime_ext.errors import ExplainedError

POLL_S = 0.2
MAX_RESTARTS = 5
"""Restarts within one phase; an engine that dies more often has a fault that restarting hides."""


class Engine(Protocol):
    """What the loop needs of an engine process."""

    def alive(self) -> bool: ...

    def restart(self) -> str: ...


class EngineLostError(ExplainedError, RuntimeError):
    """The engine died again and again."""


@contextlib.asynccontextmanager
async def watched(engine: Engine, on_restart: Callable[[int], None]) -> AsyncIterator[None]:
    """While the body runs, restart `engine` whenever it is found dead.

    Raises EngineLostError after MAX_RESTARTS restarts.
    """
    body = asyncio.current_task()
    assert body is not None
    watcher = asyncio.create_task(_watch(engine, on_restart, body))
    try:
        yield
    except asyncio.CancelledError:
        if watcher.done() and (error := watcher.exception()) is not None:
            raise error from None
        raise
    finally:
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError, EngineLostError):
            await watcher


async def _watch(
    engine: Engine, on_restart: Callable[[int], None], body: asyncio.Task[object]
) -> None:
    restarts = 0
    while True:
        await asyncio.sleep(POLL_S)
        if engine.alive():
            continue
        restarts += 1
        if restarts > MAX_RESTARTS:
            body.cancel()
            raise EngineLostError(
                f"the rollout engine died {restarts} times in one phase; its log is in the run "
                "folder under attempts/N/logs"
            )
        on_restart(restarts)
        await asyncio.to_thread(engine.restart)
