"""Scoring the items of a request within the service's limits.

One design choice: running out of time, or being told to stop, is "no verdict" for the items that
are not decided yet; what was decided and paid for is always answered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

from rewards.base import Reward
from rewards.judge.server.body import RefusedError
from rewards.judge.server.payloads import Item
from rewards.judge.server.settings import ServerSettings
from rewards.recorder import combine_safely, score_group_safely, score_safely
from rewards.types import Score, undetermined


class Scoring:
    """Scores items by one reward; used from one event loop."""

    def __init__(self, reward: Reward, settings: ServerSettings) -> None:
        self.reward = reward
        self.settings = settings
        self.outstanding = 0
        """Responses taken in and not answered yet."""
        self._places = asyncio.Semaphore(settings.concurrency)
        self._running: set[asyncio.Task[list[Score]]] = set()

    async def score(self, items: Sequence[Item]) -> list[Score]:
        """One score per item, in order; items of a group after the reward's group rule.

        Undecided after `request_timeout_s`: reason "request_timeout"; cut short: "shutdown".
        Raises RefusedError 422 for a task without the gold its reward needs, 503 where too many
        responses wait already.
        """
        for position, item in enumerate(items):
            self._require_gold(item, position)
        with self._taken_in(len(items)):
            units = self._units(items)
            tasks = [asyncio.create_task(self._score([items[i] for i in unit])) for unit in units]
            self._running.update(tasks)
            try:
                await asyncio.wait(tasks, timeout=self.settings.request_timeout_s)
                found = {
                    position: score
                    for unit, task in zip(units, tasks, strict=True)
                    for position, score in zip(unit, _scores_of(task, len(unit)), strict=True)
                }
            finally:
                self._running.difference_update(tasks)
                for task in tasks:
                    task.cancel()
        return self._combined(items, [found[position] for position in range(len(items))])

    def cut_short(self) -> None:
        """End what is being scored; its items get no verdict, their requests are answered."""
        for task in self._running:
            task.cancel()

    def _units(self, items: Sequence[Item]) -> list[list[int]]:
        """Positions scored together: each alone, or the groups of a reward that scores groups."""
        units: dict[object, list[int]] = {}
        for position, item in enumerate(items):
            alone = item.group is None or item.response.evaluation
            alone = alone or not self.reward.scores_groups()
            units.setdefault((position,) if alone else item.group, []).append(position)
        return list(units.values())

    async def _score(self, items: Sequence[Item]) -> list[Score]:
        task, responses = items[0].task, [item.response for item in items]
        async with self._places:
            if responses[0].evaluation:
                return [await score_safely(self.reward, task, responses[0])]
            return await score_group_safely(self.reward, task, responses)

    def _combined(self, items: Sequence[Item], scores: list[Score]) -> list[Score]:
        groups: dict[str | int, list[int]] = {}
        for position, item in enumerate(items):
            if item.group is not None:
                groups.setdefault(item.group, []).append(position)
        for members in groups.values():
            combined = combine_safely(self.reward, [scores[one] for one in members])
            for position, score in zip(members, combined, strict=True):
                scores[position] = score
        return scores

    def _require_gold(self, item: Item, position: int) -> None:
        if self.settings.outcome_only or item.response.evaluation:
            return
        missing = [name for name in sorted(self.reward.needs) if not getattr(item.task, name)]
        if missing:
            raise RefusedError(
                422,
                f"item {position}: the task has no {', '.join(missing)}, which the reward served "
                f"here ({type(self.reward).__name__}) needs; serve the reward that fits the data "
                "with --set reward.kind=..., or score such tasks by the outcome alone with "
                "--set data.missing_gold=outcome_only",
            )

    def require_room(self, count: int = 1) -> None:
        """RefusedError 503 where `count` more responses would be too many, 422 where they always
        will be."""
        settings = self.settings
        capacity = settings.concurrency + settings.waiting
        if count > capacity:
            raise RefusedError(422, f"{count} items; send at most {capacity} a request")
        if self.outstanding + count > capacity:
            raise RefusedError(
                503, f"{self.outstanding} responses wait already", settings.retry_after_s
            )

    @contextlib.contextmanager
    def _taken_in(self, count: int) -> Iterator[None]:
        self.require_room(count)
        self.outstanding += count
        try:
            yield
        finally:
            self.outstanding -= count


def _scores_of(task: asyncio.Task[list[Score]], count: int) -> list[Score]:
    if not task.done():
        return [undetermined("request_timeout")] * count
    return [undetermined("shutdown")] * count if task.cancelled() else task.result()
