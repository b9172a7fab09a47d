"""Requests of one moment sent as one batched /generate call.

One design choice: the hook still asks for one sample at a time; what is asked before the event loop
next runs dry goes out together. 96 posts of a lab step cost the client up to 1.2 CPU-seconds, one
batched call 0.01, and the engine sees a step as one wave whatever the timing. Off behind a router,
which must spread requests over engines.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

import httpx

from slime_ext.rollout.client import EngineGoneError, post_generate

_open: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, _Batch]] = (
    weakref.WeakKeyDictionary()
)


async def generate_together(url: str, payload: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """Like `post_generate`, as part of a batch; a refusal or loss concerns this request alone."""
    loop = asyncio.get_running_loop()
    batches = _open.setdefault(loop, {})
    if url not in batches:
        batches[url] = _Batch(url, timeout_s)
        # Runs after the first steps of all tasks that are ready now.
        loop.call_soon(_close, loop, url)
    return await batches[url].add(payload)


def _close(loop: asyncio.AbstractEventLoop, url: str) -> None:
    batch = _open[loop].pop(url)
    batch.task = loop.create_task(batch.send())


class _Batch:
    """Payloads that go out together, each with the future its caller waits for."""

    def __init__(self, url: str, timeout_s: float) -> None:
        self.url = url
        self.timeout_s = timeout_s
        self.task: asyncio.Task[None] | None = None
        self._waiting: list[tuple[dict[str, Any], asyncio.Future[dict[str, Any]]]] = []

    def add(self, payload: dict[str, Any]) -> asyncio.Future[dict[str, Any]]:
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting.append((payload, answer))
        return answer

    async def send(self) -> None:
        payloads = [payload for payload, _ in self._waiting]
        together = {
            "input_ids": [payload["input_ids"] for payload in payloads],
            "sampling_params": [payload["sampling_params"] for payload in payloads],
            "return_logprob": True,
        }
        try:
            answers = await post_generate(self.url, together, self.timeout_s)
        except EngineGoneError as error:
            for _, future in self._waiting:
                _fail(future, error)
        except httpx.HTTPStatusError:
            # One bad request refuses the whole call: ask again one by one to find whose it was.
            await asyncio.gather(*(self._alone(*waiting) for waiting in self._waiting))
        else:
            for (_, future), answer in zip(self._waiting, answers, strict=True):
                if not future.done():
                    future.set_result(answer)

    async def _alone(self, payload: dict[str, Any], future: asyncio.Future[dict[str, Any]]) -> None:
        try:
            answer = await post_generate(self.url, payload, self.timeout_s)
        except (EngineGoneError, httpx.HTTPStatusError) as error:
            _fail(future, error)
        else:
            if not future.done():
                future.set_result(answer)


def _fail(future: asyncio.Future[dict[str, Any]], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
