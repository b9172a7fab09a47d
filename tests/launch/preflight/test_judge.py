"""A judge that is away, locked, wrong or too kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from launch.preflight.finding import Finding
from launch.preflight.judge import RIGHT, WRONG, check_judge
from tests.fakes.exact_judge import exact_reply
from tests.fakes.judge import HANG, FakeJudge, fake_judge, message, status
from tests.launch.preflight.conftest import MakeContext, named

Messages = Sequence[Mapping[str, str]]
Check = Callable[..., list[Finding]]


@pytest.fixture
def check(make: MakeContext) -> Check:
    """check(endpoint, ..., offline=..., SETTING=...) with tables or running judges as endpoints."""

    def run(*endpoints: Any, offline: bool = False, **settings: Any) -> list[Finding]:
        tables = [{"url": one.url} if isinstance(one, FakeJudge) else one for one in endpoints]
        judge = {"endpoints": tables, **settings}
        context = make(offline=offline, outcome={"kind": "judge", "judge": judge})
        return check_judge(context.recipe, context)

    return run


def always(word: str) -> Callable[[Messages], str]:
    def reply(messages: Messages) -> str:
        code = re.search(r"correct (\w+): yes", messages[-1]["content"])
        assert code is not None
        return f"final answer: it\nreasoning: so it is\ncorrect {code[1]}: {word}"

    return reply


def opposite(messages: Messages) -> str:
    said = exact_reply(messages)
    return said[:-3] + "no" if said.endswith("yes") else said[:-2] + "yes"


def test_a_judge_that_can_tell(check: Check) -> None:
    with fake_judge(exact_reply) as judge:
        finding = named(check(judge), judge.url)
    assert finding.status == "pass"
    assert judge.calls == 2


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (always("yes"), f"yes to the wrong answer '{WRONG}'"),
        (always("no"), f"no to the right answer '{RIGHT}'"),
        (opposite, "no to the right answer and yes to the wrong one"),
    ],
    ids=["always yes", "always no", "the other way round"],
)
def test_a_judge_that_cannot_tell(check: Check, reply: Any, said: str) -> None:
    with fake_judge(reply) as judge:
        finding = named(check(judge), judge.url)
    assert finding.status == "fail"
    assert said in finding.message
    assert "judge-check" in finding.remedy


@pytest.mark.parametrize(
    ("behaviour", "said", "remedy"),
    [
        (status(401), "wants a key", "key_env"),
        (status(404), "knows no model 'mistral'", "/models"),
        (status(400), "refuses the request", "extra_body"),
        (status(429), "limits the rate", "concurrency"),
        (status(500), "fails", "log"),
        (HANG, "no complete reply in time", "request_timeout_s"),
        (message(content="I would rather not say."), "no verdict", "protocol"),
    ],
    ids=["401", "404", "400", "429", "500", "hangs", "chatter"],
)
def test_a_judge_that_gives_no_verdict(
    check: Check, behaviour: Any, said: str, remedy: str
) -> None:
    with fake_judge(exact_reply) as judge:
        judge.default = behaviour
        timeout = {"request_timeout_s": 0.3} if behaviour is HANG else {}
        finding = named(check(judge, model="mistral", **timeout), judge.url)
    assert finding.status == "fail"
    assert said in finding.message
    assert remedy in finding.remedy


def test_a_dead_server_beside_a_live_one_is_seen(check: Check) -> None:
    with fake_judge(exact_reply) as dead, fake_judge(exact_reply) as alive:
        dead.down = True
        findings = check(dead, alive)
    assert named(findings, dead.url).status == "fail"
    assert "nobody answers" in named(findings, dead.url).message
    assert named(findings, alive.url).status == "pass"


def test_a_wrong_key_names_its_variable_and_not_its_value(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-not-to-be-seen")
    with fake_judge(exact_reply) as judge:
        judge.default = status(401)
        finding = named(check({"url": judge.url, "key_env": "JUDGE_KEY"}), judge.url)
        assert judge.headers[0]["authorization"] == "Bearer sk-not-to-be-seen"
    assert finding.status == "fail"
    assert "JUDGE_KEY" in finding.message + finding.remedy
    assert "sk-not" not in str(finding)


def test_an_absent_key_is_named_without_a_call(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    with fake_judge(exact_reply) as judge:
        finding = named(check({"url": judge.url, "key_env": "JUDGE_KEY"}), judge.url)
    assert finding.status == "fail"
    assert "JUDGE_KEY" in finding.message
    assert judge.calls == 0


def test_stored_verdicts_do_not_answer_for_a_server(check: Check, tmp_path: Path) -> None:
    cache = str(tmp_path / "verdicts.sqlite")
    with fake_judge(exact_reply) as judge:
        assert named(check(judge, cache=cache), judge.url).status == "pass"
        judge.down = True
        assert named(check(judge, cache=cache), judge.url).status == "fail"
    assert not Path(cache).exists()


def test_offline_nobody_is_asked(check: Check) -> None:
    with fake_judge(exact_reply) as judge:
        assert named(check(judge, offline=True), "servers").status == "skip"
    assert judge.calls == 0


def test_no_endpoint_and_no_judge(check: Check, make: MakeContext) -> None:
    assert named(check(), "endpoints").status == "fail"
    context = make()
    assert check_judge(context.recipe, context) == []


def test_the_job_s_own_judge_is_not_asked(make: MakeContext) -> None:
    url = "http://${LONGRL_SERVICE_JUDGE}:30000/v1"
    service = {"name": "judge", "command": "exec judge", "port": 30000}
    context = make(
        outcome={"kind": "judge", "judge": {"endpoints": [{"url": url}]}},
        cluster={"services": [service]},
    )
    finding = named(check_judge(context.recipe, context), url)
    assert finding.status == "skip"
    assert "service judge" in finding.message


@pytest.mark.parametrize(("nodes", "url", "warned"), [
    (2, "http://localhost:9/v1", True),
    (1, "http://localhost:9/v1", False),
    (2, "http://judge.invalid:9/v1", False),
])  # fmt: skip
def test_a_machines_own_address_is_none_for_several_nodes(
    make: MakeContext, nodes: int, url: str, warned: bool
) -> None:
    judge = {"endpoints": [{"url": url}], "request_timeout_s": 2.0}
    context = make(
        backend="slime", cluster={"nodes": nodes}, outcome={"kind": "judge", "judge": judge}
    )
    found = check_judge(context.recipe, context)
    assert [one.name for one in found if one.status == "warn"] == ["address"] * warned
