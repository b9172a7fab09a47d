"""One engine for all requests of a group, so that their shared prompt is computed once.

One design choice: where the router routes by a key it is given the group as key; under any other
policy requests go straight to the workers the router lists, each new group to the one with the
fewest groups at work (ties: fewest lately, then rendezvous hashing, so that runs agree). The router
stays the way out whenever workers cannot be learnt or reached.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import orjson

from slime_ext.rollout.client import (
    EngineGoneError,
    LostRequestError,
    client_of_this_loop,
    post_generate,
    post_once,
)

KEY_POLICIES = ("consistent_hashing", "manual")
"""Router policies that read KEY_HEADER: slime's fork has the first, the released router the
second."""
KEY_HEADER = "X-SMG-Routing-Key"
LEARN_EVERY_S = 30.0
"""Age at which the list of workers is asked for again: engines come back under new addresses."""
AVOID_S = 30.0
"""How long a worker that lost a request gets no other."""
HOME_S = 120.0
"""A group without requests for this long may move: siblings are sent together, and an evaluation
asks for the same rows again after the load has changed."""
LEARN_TIMEOUT_S = 5.0

_of_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Affinity]] = (
    weakref.WeakKeyDictionary()
)


async def post_for_group(args: Any, group: str, payload: dict[str, Any], timeout_s: float) -> Any:
    """POST `payload` to /generate of the engine that serves `group`, and return the answer.

    `args` needs the host's `sglang_router_ip` and `sglang_router_port`. Raises as `post_generate`.
    """
    router = f"http://{args.sglang_router_ip}:{args.sglang_router_port}"
    if getattr(args, "router_policy", None) in KEY_POLICIES:
        headers = {KEY_HEADER: group}
        return await post_generate(f"{router}/generate", payload, timeout_s, headers)
    routers = _of_loop.setdefault(asyncio.get_running_loop(), {})
    return await routers.setdefault(router, Affinity(router)).post(group, payload, timeout_s)


class Affinity:
    """Groups and workers behind one router, for one event loop."""

    def __init__(self, router: str) -> None:
        self.router = router
        self._workers: list[str] = []
        self._learnt = -LEARN_EVERY_S
        self._learning = asyncio.Lock()
        self._avoided: dict[str, float] = {}
        self._homes: dict[str, tuple[str, float]] = {}
        self._active: Counter[tuple[str, str]] = Counter()
        """Requests under way by (worker, group)."""

    async def post(self, group: str, payload: dict[str, Any], timeout_s: float) -> Any:
        """As `post_for_group`: worker after worker while they lose the request, then the router."""
        deadline = time.monotonic() + timeout_s
        body = orjson.dumps(payload)
        while (worker := await self.choose(group)) is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise EngineGoneError(f"no engine of {self.router} answered in {timeout_s:.0f} s")
            with self._counted(worker, group):
                try:
                    return await post_once(f"{worker}/generate", body, left)
                except LostRequestError:
                    self._avoided[worker] = time.monotonic() + AVOID_S
                    self._learnt = -LEARN_EVERY_S
        left = max(1.0, deadline - time.monotonic())
        return await post_generate(f"{self.router}/generate", payload, left)

    async def choose(self, group: str) -> str | None:
        """The worker for the next request of `group`; None sends it through the router."""
        await self._learn()
        now = time.monotonic()
        live = [url for url in self._workers if self._avoided.get(url, 0.0) <= now]
        # With one engine there is nothing to choose, and the router knows how to reach it.
        if len(self._workers) < 2 or not live:
            return None
        home, used = self._homes.pop(group, ("", 0.0))
        if home not in live or (now - used > HOME_S and not self._active[home, group]):
            busy = Counter(worker for worker, _ in self._active)
            recent = Counter(worker for worker, _ in self._homes.values())
            home = min(live, key=lambda url: (busy[url], recent[url], _score(group, url)))
        self._homes[group] = (home, now)
        self._forget(now)
        return home

    async def _learn(self) -> None:
        async with self._learning:
            if time.monotonic() - self._learnt < LEARN_EVERY_S:
                return
            try:
                answer = await client_of_this_loop().get(
                    f"{self.router}/workers", timeout=LEARN_TIMEOUT_S
                )
                answer.raise_for_status()
                self._workers = addressable(orjson.loads(answer.content))
            except (httpx.HTTPError, orjson.JSONDecodeError):
                self._workers = []
            self._learnt = time.monotonic()

    @contextlib.contextmanager
    def _counted(self, worker: str, group: str) -> Iterator[None]:
        self._active[worker, group] += 1
        try:
            yield
        finally:
            self._active[worker, group] -= 1
            if not self._active[worker, group]:
                del self._active[worker, group]
            self._homes[group] = (self._homes.get(group, (worker, 0.0))[0], time.monotonic())

    def _forget(self, now: float) -> None:
        """Drop the oldest home where it is idle; homes are in order of their last choice."""
        group, (worker, used) = next(iter(self._homes.items()))
        if now - used > HOME_S and not self._active[worker, group]:
            del self._homes[group]


def addressable(answer: Any) -> list[str]:
    """URLs of the workers in an answer of GET /workers that may be asked directly.

    None where a request needs two workers (prefill and decode apart) or where a URL names a rank
    inside an engine (`http://host:port@1`): only the router can do that.
    """
    workers = answer.get("workers") if isinstance(answer, dict) else None
    urls = []
    for worker in workers if isinstance(workers, list) else []:
        url = str(worker.get("url", "")) if isinstance(worker, dict) else ""
        if not url.startswith("http") or "@" in url:
            return []
        if worker.get("worker_type", "regular") != "regular":
            return []
        if worker.get("is_healthy", True):
            urls.append(url.rstrip("/"))
    return sorted(set(urls))


def _score(group: str, url: str) -> bytes:
    return hashlib.blake2b(f"{group}\n{url}".encode(), digest_size=8).digest()
