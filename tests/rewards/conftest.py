"""A scripted outcome scorer that counts its calls."""

from __future__ import annotations

import pytest

from rewards.outcome import Outcome, OutcomeConfig
from rewards.types import Task
from rewards.verdicts import Verdict, no_verdict, verdict


class ScriptedOutcome(Outcome):
    """Right for "yes", half right for "half", no verdict for "outage", wrong otherwise."""

    def __init__(self) -> None:
        super().__init__(OutcomeConfig())
        self.asked: list[str] = []

    async def judge(self, task: Task, answer: str) -> Verdict:
        self.asked.append(answer)
        if answer == "outage":
            return no_verdict("timeout")
        return verdict({"yes": 1.0, "half": 0.5}.get(answer, 0.0))


@pytest.fixture
def outcome() -> ScriptedOutcome:
    return ScriptedOutcome()
