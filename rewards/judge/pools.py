"""Pooled HTTP clients, one per event loop.

One design choice: httpx connections belong to the loop that opened them, and slime makes loops of
its own, so a pool is looked up by the running loop and dies with it.
"""

from __future__ import annotations

import asyncio
import threading
import weakref

import httpx

CONNECT_S = 10.0
"""A server that does not accept within this is down; the whole attempt may take far longer."""
KEEPALIVE_S = 4.0
"""uvicorn, and with it SGLang and vLLM, closes an idle connection after 5 s; we close first."""


class Pools:
    """Clients of all loops, with at most `connections` connections each."""

    def __init__(self, connections: int, connect_s: float = CONNECT_S) -> None:
        self._limits = httpx.Limits(
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=KEEPALIVE_S,
        )
        # The attempt is timed as a whole by its caller: a read timeout starts again at each byte.
        self._timeout = httpx.Timeout(None, connect=connect_s)
        self._certificates = httpx.create_ssl_context()
        self._lock = threading.Lock()
        self._clients: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, dict[bool, httpx.AsyncClient]
        ] = weakref.WeakKeyDictionary()

    def client(self, *, proxied: bool) -> httpx.AsyncClient:
        """The client of the running loop; `proxied` takes proxies from the environment."""
        loop = asyncio.get_running_loop()
        with self._lock:
            of_loop = self._clients.setdefault(loop, {})
            if proxied not in of_loop:
                of_loop[proxied] = httpx.AsyncClient(
                    limits=self._limits,
                    timeout=self._timeout,
                    trust_env=proxied,
                    verify=self._certificates,
                )
            return of_loop[proxied]

    async def aclose(self) -> None:
        """Close the clients of the running loop and of every other loop that still runs."""
        here = asyncio.get_running_loop()
        with self._lock:
            loops = list(self._clients.items())
            self._clients.clear()
        for loop, of_loop in loops:
            for client in of_loop.values():
                if loop is here:
                    await client.aclose()
                elif loop.is_running():
                    work = asyncio.run_coroutine_threadsafe(client.aclose(), loop)
                    await asyncio.wrap_future(work)
