"""A reward that can only be given to a whole group, as a user may name it in a recipe.

A class and nothing of a test in it, so that a recipe finds the same one in every process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rewards.base import Reward, RewardConfig
from rewards.types import Response, Score, Task, undetermined


class Ranked(Reward):
    """The share of the group's other responses that are shorter. In a group that holds "undecided"
    there is no verdict on anything while `no_verdicts` says so; "raise" is its own fault."""

    Config = RewardConfig
    sizes: ClassVar[list[int]] = []
    """Responses of each call; a test clears it."""
    no_verdicts: ClassVar[bool] = False

    async def score(self, task: Task, response: Response) -> Score:
        assert response.evaluation, "a training response must come with its group"
        return Score(1.0, {"outcome": 1.0})

    async def score_group(self, task: Task, responses: Sequence[Response]) -> list[Score]:
        self.sizes.append(len(responses))
        texts = [response.text for response in responses]
        if "raise" in texts:
            raise KeyError("a fault of the user's")
        if "undecided" in texts and type(self).no_verdicts:
            return [undetermined("no_verdict:timeout")] * len(texts)
        lengths = [len(text) for text in texts]
        others = max(1, len(texts) - 1)
        return [
            Score(shorter / others, {"outcome": shorter / others})
            for shorter in (sum(other < own for other in lengths) for own in lengths)
        ]


RANKED = f"{__name__}:Ranked"
