"""The client against a server that fails in every way a server can, one request at a time."""

from __future__ import annotations

import gzip
import json
from email.utils import formatdate
from time import time

import pytest

from rewards.judge.client import ChatClient
from rewards.judge.config import EndpointConfig, JudgeConfig
from rewards.judge.types import ChatReply, ChatRequest, NoReplyError
from tests.fakes.judge import HANG, RESET, Behaviour, FakeJudge, fake_judge, message, raw, status
from tests.fakes.timing import FakeTime

REQUEST = ChatRequest(({"role": "user", "content": "Is it right?"},), "judge-model", 0.0, 64)


def client(fake: FakeJudge, timing: FakeTime | None = None, **settings: object) -> ChatClient:
    config = JudgeConfig.model_validate({"endpoints": [{"url": fake.url}], **settings})
    timing = timing or FakeTime()
    return ChatClient(config, "default", clock=timing.clock, sleep=timing.sleep)


async def failure(judge: ChatClient, **arguments: float) -> NoReplyError:
    with pytest.raises(NoReplyError) as caught:
        await judge.chat(REQUEST, **arguments)
    await judge.aclose()
    return caught.value


async def test_a_reply_carries_words_reasoning_and_usage() -> None:
    with fake_judge(lambda messages: messages[0]["content"].upper()) as fake:
        judge = client(fake)
        plain = await judge.chat(REQUEST)
        fake.plan.append(message(content="yes", reasoning_content="because"))
        thinking = await judge.chat(REQUEST)
        fake.plan.append(message(content=None, reasoning="only thought"))
        thought = await judge.chat(REQUEST)
        fake.plan.append(message(content=None, refusal="I cannot"))
        refusal = await judge.chat(REQUEST)
        await judge.aclose()
    assert plain == ChatReply("IS IT RIGHT?", None, "stop", 3, 4)
    assert (thinking.content, thinking.reasoning) == ("yes", "because")
    assert (thought.content, thought.reasoning) == ("", "only thought")
    assert refusal.content == "I cannot"
    counters = judge.counters()
    assert counters["replies"] == counters["requests"] == counters["attempts"] == 4
    assert counters["prompt_tokens"] == 12
    assert "retries" not in counters


async def test_the_request_is_openai_shaped_and_extra_body_wins() -> None:
    with fake_judge() as fake:
        judge = client(fake, extra_body={"top_p": 0.5, "max_completion_tokens": 9})
        await judge.chat(REQUEST)
        await judge.aclose()
    assert fake.bodies[0] == {
        "model": "judge-model",
        "messages": [{"role": "user", "content": "Is it right?"}],
        "temperature": 0.0,
        "top_p": 0.5,
        "max_completion_tokens": 9,
    }


async def test_lone_surrogates_are_sent_as_question_marks() -> None:
    with fake_judge(lambda messages: messages[0]["content"]) as fake:
        judge = client(fake)
        request = ChatRequest(({"role": "user", "content": "a\ud800b"},), "m", 0.0, 8)
        assert (await judge.chat(request)).content == "a?b"
        await judge.aclose()


@pytest.mark.parametrize(
    ("code", "reason", "calls"),
    [
        (400, "refused_request", 1),
        (401, "unauthorised", 1),
        (403, "unauthorised", 1),
        (404, "not_found", 1),
        (413, "refused_request", 1),
        (308, "not_found", 1),
        (429, "rate_limited", 4),
        (500, "server_error", 4),
        (503, "server_error", 4),
    ],
)
async def test_only_429_and_5xx_are_asked_again(code: int, reason: str, calls: int) -> None:
    with fake_judge() as fake:
        fake.default = status(code)
        judge = client(fake, attempts=4)
        error = await failure(judge)
    assert error.reason == reason
    assert str(code) in error.detail
    assert fake.calls == calls
    counters = judge.counters()
    assert counters[f"failed/{reason}"] == 1
    assert counters[f"attempt_failed/{reason}"] == calls
    assert counters.get("retries", 0) == calls - 1
    assert "replies" not in counters


@pytest.mark.parametrize("code", [429, 500, 502, 503])
async def test_a_burst_shorter_than_the_attempts_is_survived(code: int) -> None:
    with fake_judge() as fake:
        fake.plan.extend([status(code)] * 3)
        judge = client(fake, attempts=4)
        assert (await judge.chat(REQUEST)).content == "stand-in reply"
        await judge.aclose()
    assert fake.calls == 4
    assert fake.connections == 1
    assert judge.counters()["retries"] == 3


async def test_waits_between_attempts_double_with_full_jitter() -> None:
    timing = FakeTime()
    with fake_judge() as fake:
        fake.default = status(503)
        settings = {"attempts": 7, "request_timeout_s": 10, "deadline_s": 99}
        error = await failure(client(fake, timing, breaker_failures=99, **settings))
    assert error.reason == "server_error"
    assert len(timing.waits) == 6
    bounds = [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    assert all(0 <= wait <= bound for wait, bound in zip(timing.waits, bounds, strict=True))
    assert len(set(timing.waits)) == 6


async def test_retry_after_is_waited_for() -> None:
    timing = FakeTime()
    with fake_judge() as fake:
        later = formatdate(time() + 30, usegmt=True)
        fake.plan.extend([status(429, "2"), status(429, later), status(503, "4")])
        judge = client(fake, timing)
        await judge.chat(REQUEST)
        await judge.aclose()
    assert [round(wait) for wait in timing.waits] in ([2, 30, 4], [2, 29, 4])
    assert fake.calls == 4


async def test_retry_after_beyond_the_deadline_ends_at_once() -> None:
    timing = FakeTime()
    with fake_judge() as fake:
        fake.plan.append(status(429, "3600"))
        error = await failure(client(fake, timing))
    assert error.reason == "rate_limited"
    assert fake.calls == 1
    assert timing.waits == []


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        (HANG, "timeout"),
        (Behaviour(drip_s=0.01), "timeout"),
        (Behaviour(delay_s=5.0), "timeout"),
        (RESET, "connect"),
    ],
    ids=["hang", "drip", "slow", "reset"],
)
async def test_a_server_that_does_not_finish_is_asked_again(
    behaviour: Behaviour, reason: str
) -> None:
    with fake_judge() as fake:
        fake.default = behaviour
        judge = client(fake, attempts=2, request_timeout_s=0.15)
        error = await failure(judge)
    assert error.reason == reason
    assert fake.calls == 2
    assert judge.counters()[f"attempt_failed/{reason}"] == 2


async def test_a_request_after_a_hang_is_answered() -> None:
    with fake_judge() as fake:
        fake.plan.extend([HANG, RESET])
        judge = client(fake, request_timeout_s=0.15, concurrency=1)
        assert (await judge.chat(REQUEST)).content == "stand-in reply"
        await judge.aclose()


async def test_a_server_that_refuses_connections() -> None:
    with fake_judge() as fake:
        fake.down = True
        judge = client(fake, attempts=3)
        error = await failure(judge)
        assert error.reason == "connect"
        assert "Connect call failed" in error.detail
        assert judge.counters()["attempt_failed/connect"] == 3
        fake.down = False
        assert (await judge.chat(REQUEST)).content == "stand-in reply"
        await judge.aclose()


async def test_the_deadline_ends_an_attempt_under_way() -> None:
    with fake_judge() as fake:
        fake.default = HANG
        judge = client(fake)
        error = await failure(judge, deadline_s=0.1)
    assert error.reason == "deadline"
    assert fake.calls == 1
    assert judge.counters()["failed/deadline"] == 1


async def test_a_wait_that_would_pass_the_deadline_is_not_begun() -> None:
    timing = FakeTime()
    with fake_judge() as fake:
        fake.default = status(500)
        judge = client(fake, timing, attempts=50, request_timeout_s=1, deadline_s=500)
        error = await failure(judge, deadline_s=5.0)
    assert error.reason == "server_error"
    assert sum(timing.waits) < 5.0
    assert fake.calls < 50


ONE = {"choices": [{"message": {"content": "yes"}}]}


@pytest.mark.parametrize(
    "behaviour",
    [
        raw(b"<html>gateway</html>"),
        raw(b""),
        raw(b"[1]"),
        raw(b'{"choices": []}'),
        raw(b'{"choices": [{"text": "yes"}]}'),
        raw(b'{"choices": ["yes"]}'),
        raw(b'{"choices": [{"message": {"content": ["yes"]}}]}'),
        raw(b'{"error": {"message": "overloaded", "code": "overloaded"}}'),
        raw(b"[" * 100_000),
        raw(gzip.compress(json.dumps(ONE).encode(), mtime=0), **{"content-encoding": "gzip"}),
        Behaviour(choices=2),
    ],
    ids=lambda behaviour: repr(behaviour.body)[:24],
)
async def test_another_shape_is_bad_json(behaviour: Behaviour) -> None:
    with fake_judge() as fake:
        fake.default = behaviour
        error = await failure(client(fake))
    assert error.reason == "bad_json"
    assert fake.calls == 1


@pytest.mark.parametrize(
    "fields", [{"content": None}, {"content": ""}, {"content": " \n"}, {"reasoning": ""}]
)
async def test_no_words_at_all_are_empty(fields: dict[str, str | None]) -> None:
    with fake_judge() as fake:
        fake.default = message(**fields)
        error = await failure(client(fake))
    assert error.reason == "empty"
    assert fake.calls == 1


@pytest.mark.parametrize("code", [200, 500])
async def test_a_body_of_10_mb_is_not_read(code: int) -> None:
    with fake_judge() as fake:
        fake.plan.append(Behaviour(status=code, body=b"x" * 10_000_000))
        judge = client(fake, attempts=1)
        error = await failure(judge)
        assert error.reason == ("too_large" if code == 200 else "server_error")
        assert (await judge.chat(REQUEST)).content == "stand-in reply"
        await judge.aclose()


async def test_a_proxy_is_not_asked_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with fake_judge() as fake:
        judge = client(fake)
        assert (await judge.chat(REQUEST)).content == "stand-in reply"
        await judge.aclose()


async def test_a_proxy_is_asked_for_other_machines_on_a_connection_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with fake_judge() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        config = JudgeConfig(endpoints=(EndpointConfig(url="http://judge.invalid/v1"),))
        judge = ChatClient(config, "default", sleep=FakeTime().sleep)
        for _ in range(2):
            with pytest.raises(NoReplyError, match="status 404"):
                await judge.chat(REQUEST)
        await judge.aclose()
    assert proxy.connections == 2


async def test_the_model_of_a_server_wins() -> None:
    with fake_judge() as fake:
        endpoint = EndpointConfig(url=fake.url, model="its own name")
        judge = ChatClient(JudgeConfig(endpoints=(endpoint,)), "default")
        await judge.chat(REQUEST)
        await judge.aclose()
    assert fake.bodies[0]["model"] == "its own name"


@pytest.mark.parametrize("key", ["messages", "model", "n", "stream"])
def test_extra_body_must_not_change_what_a_reply_is(key: str) -> None:
    config = JudgeConfig(endpoints=(EndpointConfig(url="http://judge/v1"),), extra_body={key: True})
    with pytest.raises(ValueError, match=f"extra_body sets {key}"):
        ChatClient(config, "default")
