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
from dataclasses import dataclass
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
LEAD_S = 0.1
"""Head start of a group's first request. An engine that prefills in chunks fills the room behind a
prompt's last chunk with what comes next: a sibling would compute up to a chunk of the same prompt
there, another group's prompt wastes nothing."""

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


@dataclass
class _Home:
    """The worker of a group, when it was chosen and when it was last asked (monotonic seconds)."""

    worker: str
    began: float
    used: float
    led: bool = False
    """Whether the group's first request is on its way."""


class Affinity:
    """Groups and workers behind one router, for one event loop."""

    def __init__(self, router: str) -> None:
        self.router = router
        self._workers: list[str] = []
        self._learnt = -LEARN_EVERY_S
        self._learning = asyncio.Lock()
        self._avoided: dict[str, float] = {}
        self._homes: dict[str, _Home] = {}
        self._active: Counter[tuple[str, str]] = Counter()
        """Requests under way by (worker, group)."""

    async def post(self, group: str, payload: dict[str, Any], timeout_s: float) -> Any:
        """As `post_for_group`: worker after worker while they lose the request, then the router."""
        deadline = time.monotonic() + timeout_s
        body = orjson.dumps(payload)
        while (home := await self._choose(group)) is not None:
            with self._counted(home.worker, group):
                if home.led:
                    await asyncio.sleep(home.began + LEAD_S - time.monotonic())
                home.led = True
                left = deadline - time.monotonic()
                if left <= 0:
                    raise EngineGoneError(f"{home.worker} did not answer in {timeout_s:.0f} s")
                try:
                    return await post_once(f"{home.worker}/generate", body, left)
                except LostRequestError:
                    self._avoided[home.worker] = time.monotonic() + AVOID_S
                    self._learnt = -LEARN_EVERY_S
                finally:
                    home.used = time.monotonic()
        left = max(1.0, deadline - time.monotonic())
        return await post_generate(f"{self.router}/generate", payload, left)

    async def _choose(self, group: str) -> _Home | None:
        """The home for the next request of `group`; None sends it through the router."""
        await self._learn()
        now = time.monotonic()
        live = [url for url in self._workers if self._avoided.get(url, 0.0) <= now]
        # With one engine there is nothing to choose, and the router knows how to reach it.
        if len(self._workers) < 2 or not live:
            return None
        home = self._homes.pop(group, None)
        if home is None or home.worker not in live or self._idle(group, home, now):
            busy = Counter(worker for worker, _ in self._active)
            recent = Counter(other.worker for other in self._homes.values())
            worker = min(live, key=lambda url: (busy[url], recent[url], _score(group, url)))
            home = _Home(worker, now, now)
        self._homes[group] = home
        home.used = now
        oldest = next(iter(self._homes))
        if self._idle(oldest, self._homes[oldest], now):
            del self._homes[oldest]
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

    def _idle(self, group: str, home: _Home, now: float) -> bool:
        return now - home.used > HOME_S and not self._active[home.worker, group]


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
