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
