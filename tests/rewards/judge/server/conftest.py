"""A served reward with a scripted scorer, and a client that talks to it in process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx
import pytest

from rewards.judge.server.app import Service, build_app
from rewards.judge.server.settings import ServerSettings
from rewards.outcome import Outcome, OutcomeConfig
from rewards.parsing.families import FAMILIES
from rewards.registry import build_reward
from rewards.types import Task
from rewards.verdicts import Verdict, no_verdict, verdict


class GatedOutcome(Outcome):
    """Right for the gold answer, no verdict for "outage", an error for "bug"; "slow" waits."""

    def __init__(self) -> None:
        super().__init__(OutcomeConfig())
        self.gate = asyncio.Event()
        self.asked: list[str] = []
        self.closed = False

    async def judge(self, task: Task, answer: str) -> Verdict:
        self.asked.append(answer)
        if answer == "slow":
            await self.gate.wait()
        if answer == "outage":
            return no_verdict("timeout")
        if answer == "bug":
            raise KeyError("SECRET ANSWER")
        return verdict(float(answer == task.answer))

    def counters(self) -> dict[str, float]:
        return {"cache_hits": 3.0, "asked": float(len(self.asked))}

    async def aclose(self) -> None:
        self.closed = True


class Served:
    """A service, its scorer, and HTTP calls to it."""

    def __init__(self, kind: str, family: str, service_options: dict) -> None:
        self.outcome = GatedOutcome()
        reward = build_reward(kind, {}, FAMILIES[family], self.outcome)
        settings = service_options.pop("settings", ServerSettings())
        self.service = Service(reward, settings, **service_options)
        self.app = build_app(self.service)
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app), base_url="http://served"
        )

    async def evaluate(self, body: object, **headers: str) -> httpx.Response:
        return await self.client.post("/evaluate", json=body, headers=headers)

    async def metrics(self) -> dict[str, float]:
        text = (await self.client.get("/metrics")).text
        lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, value in lines}


@pytest.fixture
def served() -> Callable[..., Served]:
    """`served(kind, family, settings=..., token=..., endpoints=...)`."""

    def make(kind: str = "outcome", family: str = "plain", **options: object) -> Served:
        return Served(kind, family, options)

    return make
