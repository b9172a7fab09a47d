"""Whether the judge's servers can be reached, for /health.

One design choice: they are asked (GET /models, answers kept for a few seconds) instead of read off
the last verdicts, since a service that nobody has used yet should know its judge is down too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

import httpx

from rewards.judge.config import EndpointConfig, JudgeConfig
from rewards.judge.keys import read_key

_TIMEOUT_S = 2.0
_KEPT_S = 5.0
UP = "up"


class EndpointProbe:
    """The state of each endpoint of a judge; used from one event loop."""

    def __init__(self, config: JudgeConfig) -> None:
        """Raises KeyMissingError where an endpoint's key cannot be read, ValueError for an address
        with a variable that is not set."""
        self._headers = [_headers(endpoint) for endpoint in config.endpoints]
        self._urls = [endpoint.address() for endpoint in config.endpoints]
        self._known: dict[str, str] = {}
        self._asked_at = -_KEPT_S
        self._lock = asyncio.Lock()

    async def states(self) -> Mapping[str, str]:
        """Address to "up", "unreachable", "timeout", "unauthorised" or "error 503".

        A server without /models answers 404 and is up. Passwords in addresses are left out.
        """
        async with self._lock:
            if time.monotonic() - self._asked_at >= _KEPT_S:
                async with httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False) as client:
                    asked = zip(self._urls, self._headers, strict=True)
                    states = await asyncio.gather(*(_state(client, *one) for one in asked))
                names = [str(httpx.URL(url).copy_with(userinfo=b"")) for url in self._urls]
                self._known = dict(zip(names, states, strict=True))
                self._asked_at = time.monotonic()
            return self._known


async def _state(client: httpx.AsyncClient, url: str, headers: Mapping[str, str]) -> str:
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            # The status line is enough: a body may be long or never end.
            async with client.stream("GET", f"{url.rstrip('/')}/models", headers=headers) as answer:
                status = answer.status_code
    except (httpx.TimeoutException, TimeoutError):
        return "timeout"
    except (httpx.HTTPError, httpx.InvalidURL):
        return "unreachable"
    if status in (401, 403):
        return "unauthorised"
    return f"error {status}" if status >= 500 else UP


def _headers(endpoint: EndpointConfig) -> Mapping[str, str]:
    key = read_key(endpoint)
    return {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}
