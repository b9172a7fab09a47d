"""One call per distinct question, from any loop and thread, and a failure is never a value."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, get_args

import pytest

from rewards.judge import judge as judge_module
from rewards.judge.config import EndpointConfig, JudgeConfig
from rewards.judge.judge import Judge, rates
from rewards.judge.outcome import JudgeOutcome
from rewards.judge.types import NoReplyError, NoReplyReason
from rewards.outcome import OutcomeConfig, make_outcome
from rewards.types import Task
from rewards.verdicts import no_verdict, verdict
from tests.fakes.exact_judge import exact_reply
from tests.fakes.judge import fake_judge
from tests.rewards.judge.scripted import (
    TASK,
    URL,
    ScriptedClient,
    Structured,
    YesNo,
    config,
    judging,
)


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
