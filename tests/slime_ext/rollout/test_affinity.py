"""Groups stay on one engine over real HTTP, spread evenly, and leave an engine that dies."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slime_ext.rollout import affinity, client
from slime_ext.rollout.affinity import Affinity, addressable, post_for_group
from slime_ext.rollout.client import EngineGoneError
from tests.fakes.engine import FakeEngine, answer, fake_engine

STOP = {"type": "stop", "matched": 2}


def worker(url: str, **more: Any) -> dict[str, Any]:
    """One entry of GET /workers as sglang-router 0.3.2 lists it."""
    return {"url": url, "worker_type": "regular", "is_healthy": True, **more}


class Cluster:
    """Two engines and a router that answers /generate itself, so that its share is seen."""

    def __init__(self, router: FakeEngine, engines: list[FakeEngine]) -> None:
        self.router = router
        self.engines = engines
        self.args = Namespace(sglang_router_ip="127.0.0.1", sglang_router_port=router.port)

    def groups_of(self, engine: FakeEngine) -> list[str]:
        return [body["group"] for body in engine.received]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack:
        router, *engines = (stack.enter_context(fake_engine(answer([5], STOP))) for _ in range(3))
        router.workers = [worker(engine.url) for engine in engines]
        yield Cluster(router, engines)


def send(cluster: Cluster, groups: list[str], timeout_s: float = 20.0) -> list[Any]:
    """Post one request per name in `groups`, all at once."""

    async def run() -> list[Any]:
        calls = (post_for_group(cluster.args, g, {"group": g}, timeout_s) for g in groups)
        return list(await asyncio.gather(*calls))

    return asyncio.run(run())


def test_a_group_stays_on_one_engine_and_groups_are_spread(cluster: Cluster) -> None:
    groups = [f"run/0/train/{number}" for number in range(6) for _ in range(4)]

    async def all_at_work() -> None:
        for engine in cluster.engines:
            engine.gate.clear()
        calls = [post_for_group(cluster.args, g, {"group": g}, 20.0) for g in groups]
        waiting = asyncio.gather(*calls)
        while sum(len(engine.received) for engine in cluster.engines) < len(groups):
            await asyncio.sleep(0.01)
        for engine in cluster.engines:
            engine.gate.set()
        await waiting

    asyncio.run(all_at_work())
    assert cluster.router.received == []
    first, second = (cluster.groups_of(engine) for engine in cluster.engines)
    assert not set(first) & set(second)
    assert len(set(first)) == len(set(second)) == 3
    assert len(first) == len(second) == 12


def test_a_worker_that_drops_requests_is_left_and_avoided(cluster: Cluster) -> None:
    bad, good = cluster.engines
    bad.plan.extend(["drop"] * 50)
    assert len(send(cluster, [f"g{number}" for number in range(6) for _ in range(2)])) == 12
    assert len(good.received) == 12
    assert cluster.router.received == []
    # Each request that was on its way may be lost once, none is sent there again.
    assert len(bad.received) <= 6


def test_a_worker_that_is_gone_is_not_waited_for(cluster: Cluster) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert cluster.router.workers is not None
        cluster.router.workers[0] = worker(gone)
        send(cluster, ["a", "b", "c", "d"])
    assert sorted(cluster.groups_of(cluster.engines[1])) == ["a", "b", "c", "d"]


def test_without_a_live_worker_the_router_is_asked(cluster: Cluster) -> None:
    for engine in cluster.engines:
        engine.plan.extend(["drop"] * 4)
    send(cluster, ["a"])
    assert cluster.groups_of(cluster.router) == ["a"]
    assert [len(engine.received) for engine in cluster.engines] == [1, 1]


@pytest.mark.parametrize(
    "workers",
    [
        None,
        [],
        [worker("http://10.0.0.1:1")],
        [worker("http://10.0.0.1:1@0"), worker("http://10.0.0.1:1@1")],
        [worker("http://10.0.0.1:1", worker_type="prefill"), worker("http://10.0.0.1:2")],
        ["http://10.0.0.1:1", "http://10.0.0.1:2"],
    ],
    ids=["404", "none", "one", "ranks", "prefill and decode", "other form"],
)
def test_workers_that_cannot_be_addressed_leave_it_to_the_router(
    cluster: Cluster, workers: list[Any] | None
) -> None:
    cluster.router.workers = workers
    send(cluster, ["a", "b"])
    assert sorted(cluster.groups_of(cluster.router)) == ["a", "b"]
    assert cluster.router.keys == [None, None]


@pytest.mark.parametrize("policy", affinity.KEY_POLICIES)
def test_a_router_that_routes_by_key_gets_the_group_as_key(cluster: Cluster, policy: str) -> None:
    cluster.args.router_policy = policy
    send(cluster, ["a", "a", "b"])
    assert sorted(cluster.router.keys) == ["a", "a", "b"]  # type: ignore[type-var]
    assert [engine.received for engine in cluster.engines] == [[], []]


def test_a_refusal_is_the_callers_and_is_not_sent_elsewhere(cluster: Cluster) -> None:
    for engine in cluster.engines:
        engine.plan.append((400, "too long"))
    with pytest.raises(httpx.HTTPStatusError):
        send(cluster, ["a"])
    assert sum(len(engine.received) for engine in cluster.engines) == 1


def test_a_dead_router_and_dead_workers_end_in_engine_gone(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    for engine in (cluster.router, *cluster.engines):
        engine.plan.extend(["drop"] * 10)
    with pytest.raises(EngineGoneError):
        send(cluster, ["a"])


def test_a_worker_that_joins_is_used_once_the_list_is_old(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(affinity, "LEARN_EVERY_S", 0.0)
    both, cluster.router.workers = cluster.router.workers, []
    send(cluster, ["a"])
    cluster.router.workers = both
    send(cluster, ["a"])
    assert len(cluster.router.received) == 1
    assert sum(len(engine.received) for engine in cluster.engines) == 1


def test_an_idle_group_may_move_and_is_forgotten(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def homes() -> int:
        groups = Affinity(cluster.router.url)
        for number in range(10):
            await groups.post(f"g{number}", {"group": "g"}, 5.0)
        return len(groups._homes)

    assert asyncio.run(homes()) == 10
    monkeypatch.setattr(affinity, "HOME_S", -1.0)
    assert asyncio.run(homes()) <= 2


@given(st.recursive(st.none() | st.text() | st.booleans() | st.integers(), st.lists))
def test_any_answer_for_the_workers_is_survived(value: Any) -> None:
    assert addressable(value) == []
    assert addressable({"workers": value}) == []
