"""The interface of a reward: score each response, then combine the group.

One design choice: what needs only the response (`score`, async because a judge may be asked) is
kept apart from what needs the group (`combine`, pure arithmetic such as the group-max of
LongTraceRL), so that every backend can score one sample at a time and combine later. Only a reward
that must ask somebody about the whole group overrides `score_group`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from rewards.outcome import Outcome
from rewards.parsing.families import Family
from rewards.types import Response, Score, Task


class RewardConfig(BaseModel):
    """Base of every reward's typed settings; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Reward(ABC):
    """A reward: subclass it, give it a `Config`, register a name (or name it by import path)."""

    Config: ClassVar[type[RewardConfig]] = RewardConfig
    needs: ClassVar[frozenset[str]] = frozenset()
    """Gold fields of `Task` without which the reward means nothing, e.g. {"gold_chunks"}."""

    def __init__(self, config: RewardConfig, family: Family, outcome: Outcome) -> None:
        self.config = config
        self.family = family
        self.outcome = outcome

    @abstractmethod
    async def score(self, task: Task, response: Response) -> Score:
        """Score one response on its own. May raise: the recorder makes that a counted verdict."""

    async def score_group(self, task: Task, responses: Sequence[Response]) -> list[Score]:
        """Score all responses to one task, in order; the place for one request that compares them.

        A reward that overrides it gets every training group here and never one response alone;
        evaluation still goes to `score`. Lost responses are left out, so there may be fewer than
        the group's size. May raise: the whole group then has no reward.
        """
        return list(await asyncio.gather(*(self.score(task, one) for one in responses)))

    @classmethod
    def scores_groups(cls) -> bool:
        """Whether this reward must have whole groups (slime: `--group-rm`)."""
        return cls.score_group is not Reward.score_group

    def combine(self, scores: Sequence[Score]) -> list[Score]:
        """Totals that depend on the whole group (same order). Undetermined members stay so."""
        return list(scores)
