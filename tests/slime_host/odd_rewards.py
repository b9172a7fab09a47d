"""Rewards, as a user may name them in a recipe, for what a real one gives on a bad day only."""

from __future__ import annotations

from rewards.base import Reward, RewardConfig
from rewards.types import Response, Score, Task


class FirstTaskUndecided(Reward):
    """No verdict on the task that was scored first; others are worth their response's length."""

    Config = RewardConfig
    first: str | None = None

    async def score(self, task: Task, response: Response) -> Score:
        self.first = self.first or task.id
        if task.id == self.first:
            return Score(total=None, reason="no_verdict:timeout")
        total = float(len(response.text))
        return Score(total=total, parts={"outcome": total})


class AllWrong(Reward):
    """Nothing is ever right."""

    Config = RewardConfig

    async def score(self, task: Task, response: Response) -> Score:
        return Score(total=0.0, parts={"outcome": 0.0})


class Length(Reward):
    """The response's length."""

    Config = RewardConfig

    async def score(self, task: Task, response: Response) -> Score:
        total = float(len(response.text))
        return Score(total=total, parts={"outcome": total})
