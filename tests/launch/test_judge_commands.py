"""`longrl serve-judge` and `longrl judge-check` as commands, with real processes and servers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import tyro

from launch.cli.judge_check import judge_check
from launch.cli.serve_judge import serve_judge
from slime_ext.errors import ExplainedError
from tests.fakes.judge import HANG, FakeJudge, fake_judge

LAB = "configs/embedded/lab.toml"
COMMAND = "import sys, tyro; from launch.cli.serve_judge import serve_judge; {}".format(
    "sys.exit(tyro.cli(serve_judge))"
)


def says_yes(messages: Sequence[Mapping[str, str]]) -> str:
    code = re.search(r"correct (\w+): yes", messages[-1]["content"])
    assert code is not None
    return f"final answer: it\nreasoning: they agree\ncorrect {code[1]}: yes"


@dataclass
class Started:
    """A running `serve-judge`: its process and its address."""

    process: asyncio.subprocess.Process
    url: str

    async def stop(self) -> tuple[int, list[dict]]:
        """Send SIGTERM; exit code and remaining log records."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.stderr is not None
        async with asyncio.timeout(20):
            rest = await self.process.stderr.read()
            code = await self.process.wait()
        return code, [json.loads(line) for line in rest.decode().splitlines()]


def settings_of(judge: FakeJudge, *more: str) -> list[str]:
    values = [
        "reward.kind=outcome",
        "model.family=plain",
        "outcome.kind=judge",
        f'outcome.judge.endpoints=[{{url="{judge.url}"}}]',
        *more,
    ]
    return [word for value in values for word in ("--set", value)]


@contextlib.asynccontextmanager
async def started(*words: str) -> AsyncIterator[Started]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", COMMAND, LAB, "--port", "0", *words),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(60):
            line = await process.stderr.readline()
        first = json.loads(line)
        assert first["event"] == "listening", line
        yield Started(process, f"http://127.0.0.1:{first['port']}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


ITEM = {
    "task": {"question": "Where is the SECRET tower?", "answer": "Paris"},
    "response": {"text": "It stands in Paris."},
}


async def until(condition) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def test_sigterm_lets_requests_finish_and_writes_the_cache(tmp_path: Path) -> None:
    cache = tmp_path / "verdicts.sqlite"
    with fake_judge(says_yes, latency_s=0.7) as judge:
        words = settings_of(judge, f'outcome.judge.cache="{cache}"')
        async with started(*words) as running, httpx.AsyncClient() as client:
            health = await client.get(f"{running.url}/health")
            assert (health.status_code, health.json()["endpoints"]) == (200, {judge.url: "up"})
            asked = asyncio.create_task(client.post(f"{running.url}/evaluate", json=ITEM))
            await until(lambda: judge.in_flight)
            code, records = await running.stop()
            answer = await asked
            assert answer.json()["total"] == 1.0
            assert code == 0
            with pytest.raises(httpx.ConnectError):
                await client.get(f"{running.url}/health")
    events = [record["event"] for record in records]
    assert [event for event in events if event != "log"] == [
        "request",
        "stopping",
        "request",
        "closed",
    ]
    assert "SECRET" not in json.dumps(records)
    with sqlite3.connect(cache) as opened:
        tables = [name for (name,) in opened.execute("SELECT name FROM sqlite_master")]
        assert sum(opened.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables) >= 1


async def test_sigterm_answers_what_never_ends_without_a_verdict() -> None:
    with fake_judge(says_yes) as judge:
        judge.default = HANG
        words = [*settings_of(judge), "--drain", "0.3"]
        async with started(*words) as running, httpx.AsyncClient() as client:
            asked = asyncio.create_task(client.post(f"{running.url}/evaluate", json=ITEM))
            await until(lambda: judge.in_flight)
            code, _ = await running.stop()
            answer = (await asked).json()
    assert (answer["total"], answer["reason"]) == (None, "shutdown")
    assert code == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--host", "0.0.0.0"], "--token-file judge.token"),
        (["--token-env", "LONGRL_NO_SUCH_TOKEN"], "LONGRL_NO_SUCH_TOKEN"),
        (["--set", "outcome.kind=judge"], "outcome.judge.endpoints"),
        (
            [
                *("--set", "outcome.kind=judge", "--timeout", "100"),
                *("--set", 'outcome.judge.endpoints=[{url="http://127.0.0.1:9/v1"}]'),
            ],
            "outcome.judge.deadline_s",
        ),
    ],
)
def test_a_service_that_could_not_work_does_not_start(words: list[str], expected: str) -> None:
    with pytest.raises(ExplainedError, match=re.escape(expected)):
        tyro.cli(serve_judge, args=[LAB, "--port", "0", *words])


def test_a_taken_port_is_named(unused_tcp_port: int) -> None:
    import socket

    with (
        socket.create_server(("127.0.0.1", unused_tcp_port)),
        pytest.raises(ExplainedError, match=f"{unused_tcp_port}.*--port"),
    ):
        tyro.cli(serve_judge, args=[LAB, "--port", str(unused_tcp_port)])


def always(word: str):
    def reply(messages: Sequence[Mapping[str, str]]) -> str:
        return says_yes(messages).replace(": yes", f": {word}")

    return reply


def labelled(path: Path) -> str:
    rows = [
        {"question": f"q{n}", "answer": "a", "candidate": f"b{n}", "label": label}
        for n in range(6)
        for label in (["right", "wrong"][n % 2],)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "oops\n")
    return str(path)


def test_judge_check_compares_judges_and_fails_the_gullible_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, report = labelled(tmp_path / "rows.jsonl"), tmp_path / "report.json"
    with fake_judge(always("yes")) as soft, fake_judge(always("no")) as hard:
        judges = [
            *("--judge", f"name=soft,url={soft.url},attempts=1"),
            *("--judge", f"name=hard,url={hard.url},attempts=1"),
        ]
        limit = ["--max-false-yes", "0.05"]
        words = [rows, *judges, *limit, "--attacks", "--json", str(report)]
        assert tyro.cli(judge_check, args=words) == 1
        out = capsys.readouterr().out
        assert "skipped 1 of 7 lines: line 7: not JSON" in out
        assert "soft: says yes to 3 of 3 wrong answers" in out
        assert "hard: says" not in out
        only_hard = [rows, *judges[2:], *limit, "--no-probes"]
        assert tyro.cli(judge_check, args=only_hard) == 0
    found = json.loads(report.read_text())
    one, other = found["judges"]
    assert (found["rows"], found["skipped"]) == (6, {"not JSON": 1})
    assert (one["name"], one["false_yes_rate"]["value"]) == ("soft", 1.0)
    assert one["agreement"] == {"true_yes": 3, "false_yes": 3, "false_no": 0, "true_no": 0}
    assert (other["false_no_rate"]["value"], other["kappa"]) == (1.0, 0.0)
    assert other["attacks"]["share"]["hits"] == 0
    assert other["attacks"]["by_template"]["label"]["n"] == 3


def test_judge_check_does_not_pass_a_judge_that_decided_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with fake_judge(lambda _: "Hmm.") as mute:
        words = [labelled(tmp_path / "rows.jsonl"), "--endpoint", mute.url, "--model", "mute"]
        assert tyro.cli(judge_check, args=[*words, "--max-false-yes", "0.05"]) == 1
    out = capsys.readouterr().out
    assert "cannot be checked" in out
    assert "no verdict: unparsable" in out


def test_judge_check_without_a_judge_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError, match="--endpoint URL"):
        tyro.cli(judge_check, args=[labelled(tmp_path / "rows.jsonl")])
