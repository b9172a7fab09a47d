"""Requests of one moment go out as one call; what one of them meets concerns it alone."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from slime_ext.rollout import client
from slime_ext.rollout.client import EngineGoneError
from slime_ext.rollout.together import generate_together
from tests.fakes.engine import answer, fake_engine


def payload(token: int) -> dict[str, Any]:
    return {"input_ids": [token], "sampling_params": {"sampling_seed": token}}


def ask(port: int, tokens: list[int], rounds: int = 1) -> list[Any]:
    url = f"http://127.0.0.1:{port}/generate"

    async def main() -> list[Any]:
        results: list[Any] = []
        for _ in range(rounds):
            calls = (generate_together(url, payload(token), 30.0) for token in tokens)
            results += await asyncio.gather(*calls, return_exceptions=True)
        return results

    return asyncio.run(main())


def test_one_call_carries_all_and_each_gets_its_own_answer() -> None:
    stop = {"type": "stop", "matched": 2}
    with fake_engine(answer([], stop)) as fake:
        fake.plan.append([answer([token], stop) for token in (5, 6, 7)])
        results = ask(fake.port, [5, 6, 7])
        assert [result["output_ids"] for result in results] == [[5], [6], [7]]
        assert len(fake.received) == 1
        assert fake.received[0]["input_ids"] == [[5], [6], [7]]
        seeds = [params["sampling_seed"] for params in fake.received[0]["sampling_params"]]
        assert seeds == [5, 6, 7]


def test_a_later_moment_is_another_call() -> None:
    stop = {"type": "stop", "matched": 2}
    with fake_engine([answer([1], stop)] * 2) as fake:  # type: ignore[arg-type]
        assert len(ask(fake.port, [5, 6], rounds=2)) == 4
        assert len(fake.received) == 2


def test_a_refused_batch_is_asked_again_one_by_one() -> None:
    stop = {"type": "stop", "matched": 2}
    with fake_engine(answer([1], stop)) as fake:
        fake.plan.extend([(400, "one of them is bad"), answer([1], stop), (400, "bad")])
        results = ask(fake.port, [5, 6])
        assert sorted(type(result).__name__ for result in results) == ["HTTPStatusError", "dict"]
        refused = next(r for r in results if isinstance(r, httpx.HTTPStatusError))
        assert "bad" in refused.response.text
        assert len(fake.received) == 3


def test_a_lost_engine_is_told_to_every_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 1)
    with fake_engine({}) as fake:
        fake.plan.append("drop")
        results = ask(fake.port, [5, 6])
        assert [type(result) for result in results] == [EngineGoneError] * 2
