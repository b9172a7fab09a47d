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

from slime_ext.rollout.client import EngineGoneError, LostRequestError, post_generate, post_once
from slime_ext.rollout.workers import (
    addressable,
    ask_for_workers,
    ask_whether_they_abort,
    listed,
    require_an_engine,
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
LEAD_S = 0.1
"""Head start of a group's first request. An engine that prefills in chunks fills the room behind a
prompt's last chunk with what comes next: a sibling would compute up to a chunk of the same prompt
there, another group's prompt wastes nothing."""

_of_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Affinity]] = (
    weakref.WeakKeyDictionary()
)


async def post_for_group(args: Any, group: str, payload: dict[str, Any], timeout_s: float) -> Any:
    """POST `payload` to /generate of the engine that serves `group`, and return the answer.

    `args` needs the host's `sglang_router_ip` and `sglang_router_port`. Raises as `post_generate`,
    and NoEngineLeftError where a request was lost for good and no engine answers any more.
    """
    router = f"http://{args.sglang_router_ip}:{args.sglang_router_port}"
    routers = _of_loop.setdefault(asyncio.get_running_loop(), {})
    affinity = routers.setdefault(router, Affinity(router))
    try:
        if getattr(args, "router_policy", None) not in KEY_POLICIES:
            return await affinity.post(group, payload, timeout_s)
        await affinity.learn()
        headers = {KEY_HEADER: group}
        return await post_generate(f"{router}/generate", payload, timeout_s, headers)
    except EngineGoneError as error:
        await require_an_engine(router, error)
        raise


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
        self._asked: set[str] = set()
        self._asking: asyncio.Task[None] | None = None
        """Whether the workers abort; nobody waits for it."""
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
        await self.learn()
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

    async def learn(self) -> None:
        """Ask the router for its workers where the list is old."""
        async with self._learning:
            if time.monotonic() - self._learnt < LEARN_EVERY_S:
                return
            try:
                answer = await ask_for_workers(self.router)
            except httpx.TransportError:
                answer = None
            self._workers = addressable(answer)
            self._learnt = time.monotonic()
            new = {str(worker.get("url", "")) for worker in listed(answer) or []} - self._asked
            if new:
                self._asked |= new
                self._asking = asyncio.create_task(ask_whether_they_abort(new))

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


def _score(group: str, url: str) -> bytes:
    return hashlib.blake2b(f"{group}\n{url}".encode(), digest_size=8).digest()
