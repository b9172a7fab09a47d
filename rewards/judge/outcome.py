"""The outcome scorer that asks a judge: `outcome.kind = "judge"`.

One design choice: this is all there is between a reward and the judge, so a reward cannot tell a
language model from a string comparison.
"""

from __future__ import annotations

from rewards.judge.judge import Judge
from rewards.outcome import Outcome, OutcomeConfig
from rewards.types import Task
from rewards.verdicts import Verdict


class JudgeOutcome(Outcome):
    """The judge that `config.judge` describes; raises ValueError where it names no endpoint."""

    def __init__(self, config: OutcomeConfig) -> None:
        super().__init__(config)
        self._judge = Judge(config.judge)

    async def judge(self, task: Task, answer: str) -> Verdict:
        return await self._judge.verdict(task, answer)

    def counters(self) -> dict[str, float]:
        return self._judge.counters()

    async def aclose(self) -> None:
        await self._judge.aclose()
