"""The client under many requests: the limit, the reuse of connections, several event loops."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rewards.judge.client import ChatClient
from rewards.judge.config import JudgeConfig
from rewards.judge.types import ChatRequest, NoReplyError
from tests.fakes.judge import HANG, FakeJudge, fake_judge, status
from tests.fakes.timing import FakeTime

REQUEST = ChatRequest(({"role": "user", "content": "Is it right?"},), "m", 0.0, 64)


async def a_tenth(seconds: float) -> None:
    await asyncio.sleep(seconds / 10)


def client(fake: FakeJudge, **settings: object) -> ChatClient:
    config = JudgeConfig.model_validate({"endpoints": [{"url": fake.url}], **settings})
    return ChatClient(config, "default", sleep=a_tenth)


async def test_the_limit_is_reached_and_kept_and_connections_are_reused() -> None:
    with fake_judge(latency_s=0.01) as fake:
        judge = client(fake, concurrency=4)
        await asyncio.gather(*(judge.chat(REQUEST) for _ in range(40)))
        await asyncio.gather(*(judge.chat(REQUEST) for _ in range(40)))
        await judge.aclose()
    assert fake.max_in_flight == 4
    assert fake.connections == 4
    assert judge.counters()["in_flight_max"] == 4
    assert judge.counters()["waiting_s"] > 0


def test_the_limit_holds_over_loops_in_several_threads() -> None:
    with fake_judge(latency_s=0.01) as fake:
        judge = client(fake, concurrency=3)

        async def many() -> None:
            await asyncio.gather(*(judge.chat(REQUEST) for _ in range(20)))

        threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=20)
        assert not any(thread.is_alive() for thread in threads)
        assert fake.calls == 60
        assert fake.max_in_flight == 3
        asyncio.run(many())
    assert judge.counters()["replies"] == 80


async def test_waiting_for_a_place_counts_towards_the_deadline() -> None:
    with fake_judge() as fake:
        fake.default = HANG
        judge = client(fake, concurrency=1)
        first = asyncio.create_task(judge.chat(REQUEST))
        while not fake.calls:
            await asyncio.sleep(0.005)
        with pytest.raises(NoReplyError, match="deadline"):
            await judge.chat(REQUEST, deadline_s=0.05)
        assert fake.calls == 1
        first.cancel()
        fake.default = status(400)
        with pytest.raises(NoReplyError, match="400"):
            await judge.chat(REQUEST, deadline_s=5.0)
        await judge.aclose()


async def test_a_cancelled_request_gives_its_place_back() -> None:
    with fake_judge() as fake:
        fake.plan.extend([HANG] * 2)
        judge = client(fake, concurrency=2)
        stuck = [asyncio.create_task(judge.chat(REQUEST)) for _ in range(4)]
        while fake.calls < 2:
            await asyncio.sleep(0.005)
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        await asyncio.gather(*(judge.chat(REQUEST) for _ in range(4)))
        assert judge.health() == {fake.url: "closed"}
        await judge.aclose()
    assert fake.max_in_flight == 2


async def test_one_in_five_503_costs_no_reply_and_opens_nothing() -> None:
    with fake_judge(latency_s=0.005, share_503=0.2, seed=1) as fake:
        judge = client(fake, concurrency=16, attempts=8, request_timeout_s=10)
        replies = await asyncio.gather(*(judge.chat(REQUEST) for _ in range(200)))
        await judge.aclose()
    counters = judge.counters()
    assert len(replies) == counters["replies"] == 200
    assert counters["attempt_failed/server_error"] == counters["retries"] > 20
    assert "breaker_opened" not in counters


async def test_a_judge_that_goes_and_comes_back_is_found_again() -> None:
    with fake_judge(latency_s=0.002) as fake:
        judge = client(
            fake, concurrency=4, breaker_failures=2, breaker_reset_s=0.05, attempts=20,
            request_timeout_s=1,
        )  # fmt: skip
        fake.down = True
        asked = [asyncio.create_task(judge.chat(REQUEST)) for _ in range(20)]
        while "breaker_opened" not in judge.counters():
            await asyncio.sleep(0.005)
        fake.down = False
        replies = await asyncio.gather(*asked)
        await judge.aclose()
    assert len(replies) == 20
    assert judge.health() == {fake.url: "closed"}


async def test_a_retry_goes_before_requests_that_have_not_begun() -> None:
    with fake_judge(latency_s=0.02) as fake:
        fake.plan.append(status(503))
        config = JudgeConfig.model_validate({"endpoints": [{"url": fake.url}], "concurrency": 1})
        judge = ChatClient(config, "default", sleep=FakeTime().sleep)
        requests = [
            ChatRequest(({"role": "user", "content": name},), "m", 0.0, 64) for name in "abcd"
        ]
        await asyncio.gather(*(judge.chat(request) for request in requests))
        await judge.aclose()
    assert [body["messages"][0]["content"] for body in fake.bodies] == ["a", "b", "a", "c", "d"]
