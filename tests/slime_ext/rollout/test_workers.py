"""Workers that refuse to abort are counted and named; without any worker left a request ends."""

from __future__ import annotations

import asyncio
import logging
import socket
from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import pytest

from slime_ext.rollout import affinity, client, engine_counts
from slime_ext.rollout.affinity import post_for_group
from slime_ext.rollout.client import EngineGoneError
from slime_ext.rollout.workers import NoEngineLeftError, ask_whether_they_abort
from tests.fakes.engine import FakeEngine, answer, fake_engine

REPLY = answer([5], {"type": "stop", "matched": 2})


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_counts, "_refusing", {})
    engine_counts.take()


@pytest.fixture
def engines() -> Iterator[list[FakeEngine]]:
    with fake_engine(REPLY) as one, fake_engine(REPLY) as two:
        one.workers = [{"url": fake.url, "worker_type": "regular"} for fake in (one, two)]
        yield [one, two]


@pytest.fixture
def gone() -> Iterator[str]:
    """An address where nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{unused.getsockname()[1]}"


def post(port: int, seconds_after: float = 0.0, **flags: Any) -> None:
    args = Namespace(sglang_router_ip="127.0.0.1", sglang_router_port=port, **flags)

    async def run() -> None:
        await post_for_group(args, "g", {"group": "g"}, 20.0)
        await asyncio.sleep(seconds_after)

    asyncio.run(run())


@pytest.mark.parametrize("policy", ["cache_aware", *affinity.KEY_POLICIES])
def test_each_worker_is_asked_once_to_abort_a_request_of_nobody(
    engines: list[FakeEngine], caplog: pytest.LogCaptureFixture, policy: str
) -> None:
    one, two = engines
    two.abort_status = 404
    args = Namespace(
        sglang_router_ip="127.0.0.1", sglang_router_port=one.port, router_policy=policy
    )

    async def two_rounds() -> None:
        for _ in range(2):
            await post_for_group(args, "g", {"group": "g"}, 20.0)
            while not (one.aborts and two.aborts and engine_counts._refusing):
                await asyncio.sleep(0.01)

    with caplog.at_level(logging.WARNING):
        asyncio.run(two_rounds())
    for engine in engines:
        assert len(engine.aborts) == 1
        # An empty id, or abort_all, would end what others wait for.
        assert set(engine.aborts[0]) == {"rid"}
        assert engine.aborts[0]["rid"].startswith("longrl-")
    assert engine_counts.take()["engine/abort_refused"] == 1
    (warning,) = [
        record.getMessage() for record in caplog.records if record.name.startswith("slime_ext")
    ]
    assert two.url in warning
    assert "404" in warning


def test_a_worker_that_learns_to_abort_or_is_gone_is_not_counted(
    engines: list[FakeEngine], gone: str
) -> None:
    engines[0].abort_status = 404
    urls = [engines[0].url, gone, "no url"]
    asyncio.run(ask_whether_they_abort(urls))
    assert engine_counts.take()["engine/abort_refused"] == 1
    engines[0].abort_status = 200
    asyncio.run(ask_whether_they_abort(urls))
    assert engine_counts.take()["engine/abort_refused"] == 0


def test_lost_calls_are_counted_since_the_last_row_and_logged_once_an_address(
    engines: list[FakeEngine], caplog: pytest.LogCaptureFixture
) -> None:
    one = engines[0]
    one.workers = None
    one.plan.extend(["drop", 503])
    with caplog.at_level(logging.WARNING, logger="slime_ext"):
        post(one.port)
    assert engine_counts.take()["engine/lost_calls"] == 2
    assert engine_counts.take()["engine/lost_calls"] == 0
    (warning,) = [
        record.getMessage() for record in caplog.records if record.name.startswith("slime_ext")
    ]
    assert warning.startswith(f"{one.url} lost a request")


def test_with_no_engine_left_the_error_names_the_router(
    engines: list[FakeEngine], gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    router = engines[0]
    for workers in ([{"url": gone}, {"url": f"{gone}@1"}], []):
        router.workers = workers
        router.plan.append(503)
        with pytest.raises(NoEngineLeftError, match=f"the router at {router.url} has"):
            post(router.port)
    with pytest.raises(NoEngineLeftError, match=f"nothing answers at {gone}"):
        post(int(gone.rpartition(":")[2]))


@pytest.mark.parametrize("listed", [True, False], ids=["a worker answers", "no list"])
def test_a_request_lost_beside_a_living_engine_is_lost_alone(
    engines: list[FakeEngine], gone: str, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    router, alive = engines
    router.workers = [{"url": gone}, {"url": alive.url}] if listed else None
    alive.plan.append("drop")
    router.plan.append("drop")
    with pytest.raises(EngineGoneError):
        post(router.port)
