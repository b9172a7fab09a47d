"""Requests to the rollout engine: one pooled client per event loop, retries where they can help.

One design choice: only a lost connection, a 502, 503 or 504 is retried (the engine may be
restarting); any other answer is the caller's to interpret. A retry repeats the same sampling seed,
so it gives the response the lost request would have given.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping
from typing import Any

import httpx
import orjson
import stamina

from slime_ext.rollout.engine_counts import note_lost

RETRIED_STATUS = (502, 503, 504)
ATTEMPTS = 12
"""Waits of 0.2 s doubling to 5 s: about 45 s in all, longer than an engine takes to restart."""

CONNECT_TIMEOUT_S = 10.0
"""A machine that is gone does not refuse a connection, it never answers."""
NO_HEADERS: Mapping[str, str] = {}


class EngineGoneError(ConnectionError):
    """The engine did not come back within the retries."""


class LostRequestError(ConnectionError):
    """One attempt got no answer, or the answer of a server that is starting; another may help."""


_clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
    weakref.WeakKeyDictionary()
)


def client_of_this_loop() -> httpx.AsyncClient:
    """The pooled client of the running event loop (slime gives hooks loops of its own making)."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        limits = httpx.Limits(max_connections=512, max_keepalive_connections=512)
        _clients[loop] = httpx.AsyncClient(limits=limits, trust_env=False)
    return _clients[loop]


async def post_generate(
    url: str, payload: dict[str, Any], timeout_s: float, headers: Mapping[str, str] = NO_HEADERS
) -> Any:
    """POST `payload` and return the parsed answer: an object, or a list for a batched payload.

    Raises EngineGoneError when every retry failed, httpx.HTTPStatusError for any other 4xx or 5xx.
    """
    body = orjson.dumps(payload)
    try:
        async for attempt in stamina.retry_context(
            on=LostRequestError,
            attempts=ATTEMPTS,
            wait_initial=0.2,
            wait_max=5.0,
            timeout=timeout_s,
        ):
            with attempt:
                return await post_once(url, body, timeout_s, headers)
    except LostRequestError as error:
        raise EngineGoneError(f"{url} did not answer after {ATTEMPTS} attempts: {error}") from error
    raise EngineGoneError(f"{url} did not answer")


async def post_once(
    url: str, body: bytes, timeout_s: float, headers: Mapping[str, str] = NO_HEADERS
) -> Any:
    """One attempt of `post_generate`; raises LostRequestError where another may help."""
    try:
        response = await client_of_this_loop().post(
            url,
            content=body,
            headers={"content-type": "application/json", **headers},
            timeout=httpx.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S)),
        )
    except httpx.TransportError as error:
        note_lost(url, type(error).__name__)
        raise LostRequestError(repr(error)) from error
    if response.status_code in RETRIED_STATUS:
        note_lost(url, f"status {response.status_code}")
        raise LostRequestError(f"status {response.status_code}")
    response.raise_for_status()
    return orjson.loads(response.content)
