"""The workers behind a router: which there are, whether they abort, whether one is left.

One design choice: what a worker can do is asked of it directly and harmlessly, in the form that the
host will use later, so that a fault is named before it costs a step.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from typing import Any

import httpx
import orjson

from slime_ext.errors import ExplainedError
from slime_ext.rollout.client import client_of_this_loop
from slime_ext.rollout.engine_counts import note_abort_answer

TIMEOUT_S = 5.0


class NoEngineLeftError(ExplainedError, RuntimeError):
    """Nothing behind the router answers any more."""


async def ask_for_workers(router: str) -> Any:
    """The parsed answer of GET /workers; None where `router` gives no such list.

    Raises httpx.TransportError where the router itself does not answer.
    """
    answer = await client_of_this_loop().get(f"{router}/workers", timeout=TIMEOUT_S)
    try:
        return orjson.loads(answer.content) if answer.is_success else None
    except orjson.JSONDecodeError:
        return None


def listed(answer: Any) -> list[dict[str, Any]] | None:
    """The workers in an answer of GET /workers, None where it has another form."""
    workers = answer.get("workers") if isinstance(answer, dict) else None
    if not isinstance(workers, list) or not all(isinstance(one, dict) for one in workers):
        return None
    return workers


def addressable(answer: Any) -> list[str]:
    """URLs of the workers in an answer of GET /workers that may be asked directly.

    None where a request needs two workers (prefill and decode apart) or where a URL names a rank
    inside an engine (`http://host:port@1`): only the router can do that.
    """
    urls = []
    for worker in listed(answer) or []:
        url = str(worker.get("url", ""))
        if not url.startswith("http") or "@" in url:
            return []
        if worker.get("worker_type", "regular") != "regular":
            return []
        if worker.get("is_healthy", True):
            urls.append(url.rstrip("/"))
    return sorted(set(urls))


async def ask_whether_they_abort(workers: Iterable[str]) -> None:
    """Ask each worker to abort a request that nobody made, and note what it answers.

    A worker that gives no answer is left to those who send it work.
    """

    async def ask(worker: str) -> None:
        nobody = {"rid": f"longrl-{uuid.uuid4().hex}"}
        try:
            answer = await client_of_this_loop().post(
                f"{worker}/abort_request", json=nobody, timeout=TIMEOUT_S
            )
        except (httpx.TransportError, httpx.InvalidURL):
            return
        note_abort_answer(worker, answer.status_code)

    await asyncio.gather(*(ask(worker) for worker in workers))


async def require_an_engine(router: str, last: Exception) -> None:
    """Raise NoEngineLeftError where neither a worker of `router` nor, without a list of workers,
    the router answers; `last` is the loss that made the caller ask."""
    try:
        workers = listed(await ask_for_workers(router))
    except httpx.ReadTimeout:
        return
    except httpx.TransportError:
        raise NoEngineLeftError(_message(f"nothing answers at {router}", last)) from last
    if workers is None:
        return
    urls = [str(worker.get("url", "")).partition("@")[0] for worker in workers]
    if not any(await asyncio.gather(*(_answers(url) for url in urls))):
        what = f"the router at {router} has {len(urls)} workers and none of them answers"
        raise NoEngineLeftError(_message(what, last)) from last


def _message(what: str, last: Exception) -> str:
    return (
        f"{what} ({last}); look into the engines' logs, start them again, then the run: it goes on "
        "from its newest checkpoint"
    )


async def _answers(worker: str) -> bool:
    """Whether anybody is there; an engine that is too busy to answer in time counts."""
    try:
        await client_of_this_loop().get(f"{worker}/health", timeout=TIMEOUT_S)
    except httpx.ReadTimeout:
        return True
    except (httpx.TransportError, httpx.InvalidURL):
        return False
    return True
