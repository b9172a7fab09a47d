"""The one place where any exception of a reward is caught and becomes a counted verdict.

One design choice: rewards raise plain Python errors, the recorder turns each into an undetermined
score. One bad response, or a bug in a user's reward, must not end a rollout or teach a 0.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence

from rewards.base import Reward
from rewards.types import Response, Score, Task, undetermined

_log = logging.getLogger(__name__)
_seen: set[tuple[str, str]] = set()


async def score_safely(reward: Reward, task: Task, response: Response) -> Score:
    """`reward.score`, never raising: an exception gives an undetermined score with reason
    "error:ValueError" and is logged once per reward and kind; a total or part that is not finite
    gives "not_finite". Cancellation passes through."""
    try:
        return _finite(await reward.score(task, response))
    except Exception as error:  # noqa: BLE001 - the boundary of user code
        return _failed(reward, f"task {task.id}", error)


async def score_group_safely(
    reward: Reward, task: Task, responses: Sequence[Response]
) -> list[Score]:
    """All responses of a group, never raising: one by one as `score_safely`, unless the reward
    scores whole groups; then a failure, or a result of another length, concerns all of them."""
    if not reward.scores_groups():
        return list(await asyncio.gather(*(score_safely(reward, task, one) for one in responses)))
    try:
        return _whole(await reward.score_group(task, responses), len(responses), "score_group")
    except Exception as error:  # noqa: BLE001 - the boundary of user code
        return [_failed(reward, f"task {task.id}", error)] * len(responses)


def combine_safely(reward: Reward, scores: Sequence[Score]) -> list[Score]:
    """`reward.combine`, never raising: a failure makes the whole group undetermined, as in
    `score_safely`, and so does a result of another length."""
    try:
        return _whole(reward.combine(scores), len(scores), "combine")
    except Exception as error:  # noqa: BLE001 - the boundary of user code
        return [_failed(reward, "combine", error)] * len(scores)


def _whole(scores: Sequence[Score], wanted: int, where: str) -> list[Score]:
    if len(scores) != wanted:
        raise ValueError(f"{where} returned {len(scores)} scores for {wanted} responses")
    return [_finite(score) for score in scores]


def _finite(score: Score) -> Score:
    bad = {name for name, value in score.parts.items() if not math.isfinite(value)}
    if not bad and (score.total is None or math.isfinite(score.total)):
        return score
    kept = {name: value for name, value in score.parts.items() if name not in bad}
    return Score(None, kept, "not_finite")


def _failed(reward: Reward, where: str, error: Exception) -> Score:
    kind = type(error).__name__
    key = (type(reward).__qualname__, kind)
    if key not in _seen:
        _seen.add(key)
        _log.error(
            "reward %s failed in %s: %s: %s; scores become undetermined, further errors of this "
            "kind are only counted",
            key[0],
            where,
            kind,
            error,
            exc_info=error,
        )
    return undetermined(f"error:{kind}")
