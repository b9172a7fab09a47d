"""Putting many questions to one judge, a few at a time.

One design choice: no more questions are started than the judge takes at once, so that a question's
time is the judge's and not that of the queue in front of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tqdm import tqdm

from rewards.judge.judge import Judge
from rewards.types import Task


@dataclass(frozen=True, slots=True)
class Reply:
    """A verdict: yes or no, or None with the reason; `seconds` it took."""

    yes: bool | None
    reason: str | None
    seconds: float


async def ask_all(
    judge: Judge, questions: Sequence[tuple[Task, str]], at_once: int, title: str
) -> list[Reply]:
    """The judge's replies in order; a value of 0.5 and above is a yes."""
    places = asyncio.Semaphore(at_once)
    with tqdm(total=len(questions), desc=title, disable=None) as progress:

        async def ask(task: Task, answer: str) -> Reply:
            async with places:
                began = time.monotonic()
                decided = await judge.verdict(task, answer)
                seconds = time.monotonic() - began
            progress.update()
            yes = None if decided.value is None else decided.value >= 0.5
            return Reply(yes, decided.reason, seconds)

        return list(await asyncio.gather(*(ask(task, answer) for task, answer in questions)))
