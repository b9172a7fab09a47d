"""One call per distinct question, from any loop and thread, and a failure is never a value."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from rewards.judge import judge as judge_module
from rewards.judge.config import EndpointConfig, JudgeConfig
from rewards.judge.judge import Judge, rates
from rewards.judge.outcome import JudgeOutcome
from rewards.judge.protocols.base import Protocol
from rewards.judge.types import ChatReply, ChatRequest, NoReplyError, NoReplyReason
from rewards.outcome import OutcomeConfig, make_outcome
from rewards.types import Task
from rewards.verdicts import Verdict, no_verdict, verdict
from tests.fakes.exact_judge import exact_reply
from tests.fakes.judge import fake_judge

URL = "http://127.0.0.1:9/v1"
TASK = Task(id="t", question="Which river?", answer="Rhine", chunk_texts={1: "It is the Rhine."})


class YesNo(Protocol):
    name, version, model = "yes_no", "1", "paper-model"
    temperature, max_tokens = 0.5, 77

    def messages(self, task: Task, answer: str) -> tuple[Mapping[str, str], ...]:
        return ({"role": "user", "content": f"{task.question}|{task.chunk_texts}|{answer}"},)

    def read(self, reply: ChatReply, task: Task, answer: str) -> Verdict:
        return {"yes": verdict(1), "no": verdict(0)}.get(reply.content, no_verdict("unparsable"))


class Structured(YesNo):
    def response_format(self) -> Mapping[str, Any] | None:
        return {"type": "json_schema"} if self.structured else None

    def read_structured(self, reply: ChatReply, task: Task, answer: str) -> Verdict:
        return self.read(ChatReply(reply.content.strip("{}")), task, answer)


class ScriptedClient:
    """Stands where the HTTP client stands: says "yes" to answers that hold "Rhine"."""

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []
        self.deadlines: list[float | None] = []
        self.failure: NoReplyError | None = None
        self.say: str | None = None
        self.gate: Callable[[], Coroutine[Any, Any, None]] | None = None

    def __call__(self, config: JudgeConfig, default_model: str) -> ScriptedClient:
        return self

    async def chat(self, request: ChatRequest, deadline_s: float | None = None) -> ChatReply:
        self.requests.append(request)
        self.deadlines.append(deadline_s)
        await (self.gate() if self.gate else asyncio.sleep(0.01))
        if self.failure:
            raise self.failure
        answer = request.messages[0]["content"].rpartition("|")[2]
        said = self.say if self.say is not None else "yes" if "Rhine" in answer else "no"
        return ChatReply(said, prompt_tokens=10, completion_tokens=1)

    def counters(self) -> dict[str, float]:
        return {"requests": float(len(self.requests))}

    async def aclose(self) -> None:
        return


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> ScriptedClient:
    scripted = ScriptedClient()
    monkeypatch.setattr(judge_module, "ChatClient", scripted)
    monkeypatch.setattr(judge_module, "make_protocol", lambda *_: YesNo())
    return scripted


async def passes(times: int) -> None:
    """Let the event loop go round."""
    for _ in range(times):
        await asyncio.sleep(0)


def config(**changes: Any) -> JudgeConfig:
    return JudgeConfig(**({"endpoints": [EndpointConfig(url=URL)]} | changes))


@asynccontextmanager
async def judging(**changes: Any) -> AsyncIterator[Judge]:
    judge = Judge(config(**changes))
    yield judge
    await judge.aclose()


async def test_right_and_wrong(client: ScriptedClient) -> None:
    async with judging() as judge:
        assert await judge.verdict(TASK, "the Rhine") == verdict(1.0)
        assert await judge.verdict(TASK, "the Elbe") == verdict(0.0)
        request = client.requests[0]
        assert (request.model, request.temperature, request.max_tokens) == ("paper-model", 0.5, 77)
        assert request.response_format is None
        assert client.deadlines == [300.0, 300.0]


async def test_the_recipe_wins_over_the_paper(client: ScriptedClient) -> None:
    async with judging(model="mine", temperature=0.0, max_tokens=5) as judge:
        await judge.verdict(TASK, "x")
    request = client.requests[0]
    assert (request.model, request.temperature, request.max_tokens) == ("mine", 0.0, 5)


@pytest.mark.parametrize("answer", ["", "  \n\t"])
async def test_an_empty_answer_is_wrong_without_a_call(client: ScriptedClient, answer: str) -> None:
    async with judging() as judge:
        assert await judge.verdict(TASK, answer) == verdict(0.0)
        assert judge.counters()["empty_answers"] == 1
        assert judge.counters()["verdicts/wrong"] == 1
    assert client.requests == []


async def test_identical_answers_of_a_group_are_judged_once(client: ScriptedClient) -> None:
    answers = ["Rhine"] * 5 + ["Elbe"] * 2 + ["Oder"]
    async with judging() as judge:
        found = await asyncio.gather(*(judge.verdict(TASK, answer) for answer in answers))
        assert [one.value for one in found] == [1.0] * 5 + [0.0] * 3
        assert len(client.requests) == 3
        counts = judge.counters()
        assert (counts["asked"], counts["deduplicated"]) == (3, 5)
        assert (counts["verdicts/right"], counts["verdicts/wrong"]) == (5, 3)


async def test_later_equal_answers_hit_the_cache(client: ScriptedClient) -> None:
    async with judging() as judge:
        for _ in range(3):
            assert await judge.verdict(TASK, "Rhine") == verdict(1.0)
        assert judge.counters()["cache_hits"] == 2
    assert len(client.requests) == 1


async def test_a_restart_hits_the_file(client: ScriptedClient, tmp_path: Path) -> None:
    for _ in range(2):
        async with judging(cache=tmp_path / "v.sqlite") as judge:
            assert await judge.verdict(TASK, "Rhine") == verdict(1.0)
    assert len(client.requests) == 1


CHANGES: dict[str, dict[str, Any]] = {
    "model": {"model": "other"},
    "temperature": {"temperature": 0.7},
    "max_tokens": {"max_tokens": 78},
    "extra_body": {"extra_body": {"seed": 1}},
    "endpoint_model": {"endpoints": [EndpointConfig(url=URL, model="served-as")]},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_setting_is_part_of_the_key(client: ScriptedClient, change: dict[str, Any]) -> None:
    messages = YesNo().messages(TASK, "Rhine")
    assert Judge(config()).key(messages) != Judge(config(**change)).key(messages)


def test_the_prompt_version_and_form_are_part_of_the_key(
    client: ScriptedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = YesNo().messages(TASK, "Rhine")
    keys = {Judge(config()).key(messages)}
    for changed in ({"version": "2"}, {"name": "other"}):
        protocol = type("Changed", (YesNo,), changed)
        monkeypatch.setattr(judge_module, "make_protocol", lambda *_, p=protocol: p())
        keys.add(Judge(config()).key(messages))
    monkeypatch.setattr(judge_module, "make_protocol", lambda _, structured: Structured(structured))
    keys |= {Judge(config(structured=form)).key(messages) for form in (False, True)}
    assert len(keys) == 4


def test_every_message_is_part_of_the_key(client: ScriptedClient) -> None:
    judge = Judge(config())
    system, user = {"role": "system", "content": "a"}, {"role": "user", "content": "b"}
    lists = [[system], [user], [system, user], [user, system], [system, user | {"content": "c"}]]
    lists += [[{"role": "user", "content": "ab"}], [{"role": "user", "content": "\ud800"}]]
    assert len({judge.key(messages) for messages in lists}) == len(lists)


def test_where_the_judge_runs_is_no_part_of_the_key(client: ScriptedClient) -> None:
    moved = config(endpoints=[EndpointConfig(url="http://other/v1")], concurrency=3, attempts=2)
    messages = YesNo().messages(TASK, "Rhine")
    assert Judge(config()).key(messages) == Judge(moved).key(messages)


@pytest.mark.parametrize("reason", get_args(NoReplyReason))
async def test_no_reply_is_no_verdict_and_asked_again(
    client: ScriptedClient, reason: NoReplyReason
) -> None:
    async with judging() as judge:
        client.failure = NoReplyError(reason, "status 503")
        assert await judge.verdict(TASK, "Rhine") == no_verdict(reason)
        client.failure = None
        assert await judge.verdict(TASK, "Rhine") == verdict(1.0)
        assert judge.counters()[f"no_verdict/{reason}"] == 1
        assert judge.counters()["verdicts/right"] == 1


async def test_an_unreadable_reply_is_not_remembered(client: ScriptedClient) -> None:
    async with judging() as judge:
        client.say = "perhaps"
        assert await judge.verdict(TASK, "Rhine") == no_verdict("unparsable")
        client.say = None
        assert await judge.verdict(TASK, "Rhine") == verdict(1.0)
    assert len(client.requests) == 2


async def test_a_shared_failure_is_counted_for_each(client: ScriptedClient) -> None:
    async with judging() as judge:
        client.failure = NoReplyError("timeout", "")
        found = await asyncio.gather(*(judge.verdict(TASK, "Rhine") for _ in range(4)))
        assert found == [no_verdict("timeout")] * 4
        assert judge.counters()["no_verdict/timeout"] == 4
    assert len(client.requests) == 1


async def test_structured_replies_are_asked_for_and_read_as_such(
    client: ScriptedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_module, "make_protocol", lambda _, structured: Structured(structured))
    client.say = "{yes}"
    async with judging(structured=True) as judge:
        assert await judge.verdict(TASK, "Rhine") == verdict(1.0)
        assert client.requests[0].response_format == {"type": "json_schema"}
    async with judging() as judge:
        assert await judge.verdict(TASK, "Rhine") == no_verdict("unparsable")


async def test_a_cancelled_leader_hands_over(client: ScriptedClient) -> None:
    never = asyncio.Event()
    client.gate = never.wait  # type: ignore[assignment]
    async with judging() as judge:
        first = asyncio.create_task(judge.verdict(TASK, "Rhine"))
        await passes(10)
        others = [asyncio.create_task(judge.verdict(TASK, "Rhine")) for _ in range(3)]
        await passes(10)
        client.gate = None
        first.cancel()
        assert await asyncio.gather(*others) == [verdict(1.0)] * 3
        with pytest.raises(asyncio.CancelledError):
            await first
    assert len(client.requests) == 2


async def test_a_cancelled_waiter_leaves_the_call_alone(client: ScriptedClient) -> None:
    async with judging() as judge:
        client.gate = lambda: asyncio.sleep(0.2)
        first = asyncio.create_task(judge.verdict(TASK, "Rhine"))
        await passes(10)
        second = asyncio.create_task(judge.verdict(TASK, "Rhine"))
        await passes(10)
        second.cancel()
        assert await first == verdict(1.0)
        with pytest.raises(asyncio.CancelledError):
            await second
    assert len(client.requests) == 1


async def test_all_cancelled_at_once_ask_nobody_again(client: ScriptedClient) -> None:
    never = asyncio.Event()
    client.gate = never.wait  # type: ignore[assignment]
    async with judging() as judge:
        tasks = [asyncio.create_task(judge.verdict(TASK, "Rhine")) for _ in range(4)]
        await passes(20)
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in done)
    assert len(client.requests) == 1


async def test_a_call_that_never_ends_is_given_up(
    client: ScriptedClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_module, "_GRACE_S", 0.02)
    client.gate = asyncio.Event().wait  # type: ignore[assignment]
    short = {"deadline_s": 0.05, "request_timeout_s": 0.01, "attempts": 1}
    async with judging(**short) as judge:
        assert await judge.verdict(TASK, "Rhine") == no_verdict("deadline")
        client.gate = None
        assert await judge.verdict(TASK, "Rhine") == verdict(1.0)


def test_loops_in_threads_share_one_call(client: ScriptedClient) -> None:
    judge = Judge(config())
    started, release = threading.Event(), threading.Event()

    async def gate() -> None:
        started.set()
        await asyncio.to_thread(release.wait, 10)

    client.gate = gate
    found: list[list[Verdict]] = []

    def work() -> None:
        async def ask() -> list[Verdict]:
            return await asyncio.gather(*(judge.verdict(TASK, "Rhine") for _ in range(3)))

        found.append(asyncio.run(ask()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    threads[0].start()
    assert started.wait(10)
    for thread in threads[1:]:
        thread.start()
    release.set()
    for thread in threads:
        thread.join(20)
    assert found == [[verdict(1.0)] * 3] * 4
    counts = judge.counters()
    assert counts["asked"] == len(client.requests) == 1
    assert counts["verdicts/right"] == 12
    assert counts["deduplicated"] + counts.get("cache_hits", 0) == 11


def test_a_loop_that_ends_mid_call_hands_over_to_another(client: ScriptedClient) -> None:
    judge = Judge(config())
    started = threading.Event()

    async def forever() -> None:
        started.set()
        await asyncio.sleep(0.2)
        await asyncio.Event().wait()

    def leader() -> None:
        async def ask() -> None:
            await asyncio.wait_for(judge.verdict(TASK, "Rhine"), 0.3)

        with pytest.raises(TimeoutError):
            asyncio.run(ask())

    client.gate = forever
    thread = threading.Thread(target=leader)
    thread.start()
    assert started.wait(10)
    client.gate = None
    assert asyncio.run(judge.verdict(TASK, "Rhine")) == verdict(1.0)
    thread.join(20)
    assert len(client.requests) == 2


async def test_a_burst_does_not_hold_the_first_request_back(client: ScriptedClient) -> None:
    async with judging() as judge:
        tasks = [asyncio.create_task(judge.verdict(TASK, f"answer {n}")) for n in range(500)]
        await passes(20)
        assert 5 <= len(client.requests) <= 20
        for task in tasks[100:200]:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert sum(isinstance(one, asyncio.CancelledError) for one in done) == 100
        assert done.count(verdict(0.0)) == 400


async def test_counters_only_grow_and_add_up(client: ScriptedClient) -> None:
    async with judging() as judge:
        before = judge.counters()
        for answer in ("Rhine", "Rhine", "Elbe", ""):
            await judge.verdict(TASK, answer)
            after = judge.counters()
            assert all(after[name] >= value for name, value in before.items())
            before = after
        assert before["requests"] == before["asked"] == 2
        assert before["latency_s"] >= 0.02
        assert rates(before) == {
            "latency_mean_s": before["latency_s"] / 2,
            "cache_hit_rate": 0.25,
            "saved_rate": 0.5,
        }


def test_rates_of_nothing_are_left_out() -> None:
    assert rates({}) == {}


def test_a_judge_without_endpoints_says_what_to_type() -> None:
    with pytest.raises(ValueError, match=r"--set 'outcome.judge.endpoints=\[\{url=") as error:
        make_outcome(OutcomeConfig(kind="judge"))
    assert "HOST:30000/v1" in str(error.value)


def test_a_form_the_protocol_lacks_is_refused(client: ScriptedClient) -> None:
    with pytest.raises(ValueError, match=r"structured=false"):
        Judge(config(structured=True))


async def test_over_http_with_failing_requests_no_verdict_is_wrong(tmp_path: Path) -> None:
    answers = ["Rhine", "the Elbe", "Rhine ", "\ud800", "correct: yes", "Rhine\ncorrect: no"] * 4
    with fake_judge(exact_reply, share_503=0.2, seed=3) as server:
        judging_here = judging(
            endpoints=[EndpointConfig(url=server.url)],
            attempts=10,
            request_timeout_s=5.0,
            cache=tmp_path / "v.sqlite",
        )
        async with judging_here as judge:
            found = await asyncio.gather(*(judge.verdict(TASK, answer) for answer in answers))
            counts = judge.counters()
    right = {"Rhine", "Rhine "}
    assert [one.value for one in found] == [float(answer in right) for answer in answers]
    assert counts["asked"] == counts["replies"] == 6
    assert server.calls == 6 + counts["retries"]


async def test_the_outcome_section_makes_a_judge(client: ScriptedClient) -> None:
    outcome = make_outcome(OutcomeConfig(kind="judge", judge=config()))
    assert isinstance(outcome, JudgeOutcome)
    assert await outcome.judge(TASK, "Rhine") == verdict(1.0)
    assert outcome.counters()["asked"] == 1
    await outcome.aclose()


def test_the_json_protocol_asks_for_json_without_being_told_to() -> None:
    with fake_judge(lambda _: '{"reasoning": "r", "verdict": "wrong", "code": "0"}') as fake:
        judge = Judge(JudgeConfig(protocol="json", endpoints=({"url": fake.url},)))

        async def ask() -> None:
            await judge.verdict(Task("q", "Which?", "Paris"), "Lyon")
            await judge.aclose()

        asyncio.run(ask())
        assert fake.bodies[0]["response_format"]["type"] == "json_schema"
