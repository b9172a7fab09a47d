"""HTTP clients by event loop and server, each with a single connection.

One design choice: a connection belongs to the loop that opened it, so clients are kept by loop; and
each holds one connection, because a client with many walks over all of them several times a request
(64 of them cost more CPU than everything else together). How many there are is bounded by the
places for requests under way.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import threading
import urllib.request
import weakref
from collections import defaultdict
from collections.abc import AsyncIterator

import httpx

from rewards.judge.connection import Connection

CONNECT_S = 10.0
"""A server that does not accept within this is down; the whole attempt may take far longer."""
KEEPALIVE_S = 4.0
"""uvicorn, and with it SGLang and vLLM, closes an idle connection after 5 s; we close first."""


class Pools:
    """Idle clients of all loops; the last used is the first to be used again."""

    def __init__(self, connect_s: float = CONNECT_S) -> None:
        # The attempt is timed as a whole by its caller: a read timeout starts again at each byte.
        self._timeout = httpx.Timeout(None, connect=connect_s)
        self._certificates = httpx.create_ssl_context()
        self._lock = threading.Lock()
        self._idle: weakref.WeakKeyDictionary[
            asyncio.AbstractEventLoop, defaultdict[str, list[httpx.AsyncClient]]
        ] = weakref.WeakKeyDictionary()

    @contextlib.asynccontextmanager
    async def client(self, server: str, *, proxied: bool) -> AsyncIterator[httpx.AsyncClient]:
        """A client for one request to `server`; `proxied` takes the proxy of the environment.

        It is kept for the next one, unless the request was cancelled or ended in an error of
        transport.
        """
        idle = self._of_this_loop(server)
        client = idle.pop() if idle else self._new(proxied)
        try:
            yield client
        except BaseException:
            await client.aclose()
            raise
        idle.append(client)

    async def aclose(self) -> None:
        """Close the idle clients of the running loop and of every other loop that still runs."""
        here = asyncio.get_running_loop()
        with self._lock:
            loops = list(self._idle.items())
            self._idle.clear()
        for loop, servers in loops:
            for client in (one for idle in servers.values() for one in idle):
                if loop is here:
                    await client.aclose()
                elif loop.is_running():
                    work = asyncio.run_coroutine_threadsafe(client.aclose(), loop)
                    await asyncio.wrap_future(work)

    def _of_this_loop(self, server: str) -> list[httpx.AsyncClient]:
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._idle:
                self._idle[loop] = defaultdict(list)
            return self._idle[loop][server]

    def _new(self, proxied: bool) -> httpx.AsyncClient:
        if not proxied:
            direct = Connection(self._certificates, KEEPALIVE_S)
            return httpx.AsyncClient(transport=direct, timeout=self._timeout, trust_env=False)
        # Through a proxy httpx speaks itself; see connection.py why it may not reuse a connection.
        once = httpx.Limits(max_connections=1, max_keepalive_connections=0)
        return httpx.AsyncClient(limits=once, timeout=self._timeout, verify=self._certificates)


def is_proxied(scheme: str, host: str) -> bool:
    """Whether the environment names a proxy for `host`; never for this machine."""
    proxies = urllib.request.getproxies()
    if not (proxies.get(scheme) or proxies.get("all")) or _is_loopback(host):
        return False
    return not urllib.request.proxy_bypass(host)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
