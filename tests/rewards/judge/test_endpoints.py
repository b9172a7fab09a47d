"""Several servers: which is asked, who stands in, who is left out and for how long."""

from __future__ import annotations

import asyncio
import logging

import pytest

from rewards.judge.client import ChatClient
from rewards.judge.config import EndpointConfig, JudgeConfig
from rewards.judge.types import ChatRequest, NoReplyError
from tests.fakes.judge import HANG, Behaviour, FakeJudge, fake_judge, status
from tests.fakes.timing import FakeTime

REQUEST = ChatRequest(({"role": "user", "content": "Is it right?"},), "m", 0.0, 64)


def client(timing: FakeTime, *fakes: FakeJudge, **settings: object) -> ChatClient:
    endpoints = [{"url": fake.url} for fake in fakes]
    config = JudgeConfig.model_validate({"endpoints": endpoints, **settings})
    return ChatClient(config, "default", clock=timing.clock, sleep=timing.sleep)


async def reason(judge: ChatClient, deadline_s: float | None = None) -> str:
    try:
        await judge.chat(REQUEST, deadline_s)
    except NoReplyError as error:
        return error.reason
    return "replied"


async def test_load_is_spread_over_healthy_servers() -> None:
    # Long enough for all eight to be on their way before the first is answered.
    with fake_judge(latency_s=0.5) as one, fake_judge(latency_s=0.5) as two:
        judge = client(FakeTime(), one, two, concurrency=8)
        await asyncio.gather(*(judge.chat(REQUEST) for _ in range(8)))
        await judge.aclose()
    assert one.max_in_flight == two.max_in_flight == 4


async def test_a_slow_server_gets_less() -> None:
    with fake_judge(latency_s=0.1) as slow, fake_judge(latency_s=0.005) as quick:
        judge = client(FakeTime(), slow, quick, concurrency=4)
        await asyncio.gather(*(judge.chat(REQUEST) for _ in range(40)))
        await judge.aclose()
    assert slow.calls < quick.calls / 2


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_another_server_stands_in_without_a_wait(code: int) -> None:
    timing = FakeTime()
    with fake_judge() as sick, fake_judge() as well:
        sick.default = status(code)
        judge = client(timing, sick, well, breaker_failures=100)
        for _ in range(4):
            await judge.chat(REQUEST)
        await judge.aclose()
    assert timing.waits == []
    assert sick.calls >= 1
    assert well.calls == 4


async def test_a_sick_server_is_not_asked_twice_while_a_busy_one_is_well() -> None:
    with fake_judge() as sick, fake_judge(latency_s=0.05) as busy:
        sick.default = status(503)
        judge = client(FakeTime(), sick, busy, breaker_failures=100, attempts=2)
        replies = await asyncio.gather(*(judge.chat(REQUEST) for _ in range(12)))
        await judge.aclose()
    assert len(replies) == busy.calls == 12
    assert sick.calls > 1


async def test_a_server_that_is_down_is_replaced() -> None:
    with fake_judge() as sick, fake_judge() as well:
        sick.down = True
        judge = client(FakeTime(), sick, well)
        replies = await asyncio.gather(*(judge.chat(REQUEST) for _ in range(20)))
        await judge.aclose()
    assert len(replies) == 20
    assert judge.counters()["attempt_failed/connect"] >= 5


async def test_a_wrong_key_is_replaced_counted_and_named_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with fake_judge() as locked, fake_judge() as open_:
        locked.default = status(401)
        judge = client(FakeTime(), locked, open_, breaker_failures=2)
        with caplog.at_level(logging.ERROR, logger="rewards.judge"):
            for _ in range(12):
                await judge.chat(REQUEST)
        await judge.aclose()
    assert open_.calls == 12
    assert locked.calls == judge.counters()["attempt_failed/unauthorised"] == 2
    named = [record.message for record in caplog.records if "unauthorised" in record.message]
    assert len(named) == 1
    assert locked.url in named[0]
    assert "check its key" in named[0]


async def test_wrong_keys_everywhere_end_the_request_and_stay_the_reason() -> None:
    timing = FakeTime()
    with fake_judge() as one, fake_judge() as two:
        one.default = two.default = status(403)
        judge = client(timing, one, two, breaker_failures=1)
        assert [await reason(judge) for _ in range(3)] == ["unauthorised"] * 3
        assert one.calls == two.calls == 1
        timing.now += 11.0
        one.default = Behaviour()
        assert await reason(judge) == "replied"
        await judge.aclose()


async def test_a_refused_request_is_not_tried_elsewhere() -> None:
    with fake_judge() as one, fake_judge() as two:
        one.default = two.default = status(400)
        judge = client(FakeTime(), one, two, breaker_failures=1)
        assert await reason(judge) == "refused_request"
        assert one.calls + two.calls == 1
        assert set(judge.health().values()) == {"closed"}
        await judge.aclose()


async def test_the_breaker_opens_probes_and_closes() -> None:
    timing = FakeTime()
    with fake_judge() as fake:
        fake.default = status(500)
        judge = client(timing, fake, breaker_failures=3, breaker_reset_s=10.0, attempts=1)
        assert [await reason(judge) for _ in range(3)] == ["server_error"] * 3
        assert judge.health() == {fake.url: "open"}
        assert await reason(judge, deadline_s=5.0) == "no_endpoint"
        assert fake.calls == 3
        timing.now += 10.0
        assert await reason(judge) == "server_error"
        assert judge.health() == {fake.url: "open"}
        assert await reason(judge, deadline_s=5.0) == "no_endpoint"
        assert fake.calls == 4
        fake.plan.append(Behaviour())
        opened_for = timing.now
        assert await reason(judge, deadline_s=60.0) == "replied"
        assert timing.now == pytest.approx(opened_for + 10.0, abs=0.5)
        assert judge.health() == {fake.url: "closed"}
        await judge.aclose()
    assert judge.counters()["breaker_opened"] == 1
    assert judge.counters()["failed/no_endpoint"] == 2


async def test_a_single_request_probes() -> None:
    timing = FakeTime()
    with fake_judge() as fake:
        fake.default = status(500)
        judge = client(timing, fake, breaker_failures=1, attempts=1)
        assert await reason(judge) == "server_error"
        timing.now += 10.0
        fake.default = HANG
        probe = asyncio.create_task(judge.chat(REQUEST))
        while fake.calls < 2:
            await asyncio.sleep(0.005)
        assert judge.health() == {fake.url: "half_open"}
        others = await asyncio.gather(*(reason(judge, deadline_s=3.0) for _ in range(5)))
        assert others == ["no_endpoint"] * 5
        assert fake.calls == 2
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        fake.default = Behaviour()
        assert await reason(judge) == "replied"
        await judge.aclose()


async def test_a_server_that_asks_for_rest_gets_it_from_every_request() -> None:
    timing = FakeTime()
    with fake_judge() as tired, fake_judge() as other:
        tired.plan.append(status(429, "20"))
        judge = client(timing, tired, other)
        for _ in range(6):
            await judge.chat(REQUEST)
        assert tired.calls == 1
        assert judge.health()[tired.url] == "resting"
        timing.now += 20.0
        for _ in range(2):
            await judge.chat(REQUEST)
        assert tired.calls == 2
        await judge.aclose()


def test_a_judge_needs_a_server() -> None:
    with pytest.raises(ValueError, match="names no server"):
        ChatClient(JudgeConfig(), "default")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://user:hunter2@judge/v1", "holds a user"),
        ("http://judge/v1?key=hunter2", "holds a user, a query"),
        ("http://judge:1/v1/chat/completions", "up to /v1"),
        ("http:///v1", "not the address"),
        ("http://a..b/v1", "not the address"),
    ],
)
def test_an_address_that_cannot_be_used_is_named(url: str, complaint: str) -> None:
    config = JudgeConfig.model_validate({"endpoints": [{"url": url}]})
    with pytest.raises(ValueError, match=complaint) as caught:
        ChatClient(config, "default")
    assert "hunter2" not in str(caught.value)


async def test_the_last_request_of_a_batch_is_retried_quickly() -> None:
    timing = FakeTime()
    with fake_judge() as fake:
        judge = client(timing, fake, attempts=4)
        await judge.chat(REQUEST)
        fake.plan.extend([status(503)] * 3)
        await judge.chat(REQUEST)
        quick = list(timing.waits)
        timing.now += 10.0
        fake.plan.extend([status(503)] * 3)
        await judge.chat(REQUEST)
        await judge.aclose()
    assert len(quick) == 3
    assert max(quick) <= 0.02
    assert len(timing.waits) == 6
    assert max(timing.waits) > 0.02


def test_variables_in_an_address_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = EndpointConfig(url="http://${LONGRL_SERVICE_JUDGE}:30000/v1")
    monkeypatch.delenv("LONGRL_SERVICE_JUDGE", raising=False)
    with pytest.raises(ValueError, match="LONGRL_SERVICE_JUDGE, which is not set"):
        endpoint.address()
    monkeypatch.setenv("LONGRL_SERVICE_JUDGE", "10.0.0.7")
    assert endpoint.address() == "http://10.0.0.7:30000/v1"
    assert EndpointConfig(url="http://judge:30000/v1").address() == "http://judge:30000/v1"
