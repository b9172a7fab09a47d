"""Equal questions asked at once, over tasks, loops and threads, and callers that go away."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rewards.judge import judge as judge_module
from rewards.judge.judge import Judge
from rewards.verdicts import Verdict, no_verdict, verdict
from tests.rewards.judge.scripted import (
    TASK,
    ScriptedClient,
    config,
    judging,
    passes,
)


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
