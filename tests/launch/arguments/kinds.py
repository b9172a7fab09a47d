"""A rollout kind that makes several samples of one rollout, and a reward for whole groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rewards.base import Reward
from rewards.types import Response, Score, Task
from slime_ext.rollout.kinds import RolloutKind


async def _never(*_: Any) -> Any:
    raise AssertionError("nothing is sampled here")


class Ranked(Reward):
    async def score_group(self, task: Task, responses: Sequence[Response]) -> list[Score]:
        raise AssertionError("nothing is scored here")


MANY = RolloutKind(_never, fan_out=True)
