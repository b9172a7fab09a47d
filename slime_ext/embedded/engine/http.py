"""What all endpoints share: bodies, answers, errors, and waiting for the scheduler's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import orjson
from starlette.requests import Request
from starlette.responses import Response

from slime_ext.embedded.engine.protocol import BadRequestError
from slime_ext.embedded.engine.sampler import NotFiniteError

Handler = Callable[[Request], Awaitable[Response]]
_T = TypeVar("_T")


async def read_json(http: Request) -> dict[str, Any]:
    """The body as an object, {} where there is none. Raises BadRequestError."""
    raw = await http.body()
    try:
        body = orjson.loads(raw) if raw else {}
    except orjson.JSONDecodeError as error:
        raise BadRequestError(f"the body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise BadRequestError("the body must be a JSON object")
    return body


def json_answer(content: Any, status: int = 200) -> Response:
    """`content` as a JSON response; NaN becomes null."""
    return Response(orjson.dumps(content), status, media_type="application/json")


def guarded(handler: Handler) -> Handler:
    """`handler` with SGLang's error form: 400 for a bad body, 500 where the model is broken."""

    async def call(http: Request) -> Response:
        try:
            return await handler(http)
        except BadRequestError as error:
            return json_answer({"error": {"message": str(error)}}, 400)
        except NotFiniteError as error:
            return json_answer({"error": {"message": str(error)}}, 500)

    return call


async def arrival(future: Future[_T]) -> _T:
    """Wait for a scheduler's future. A cancelled waiter leaves the future alone, which
    asyncio.wrap_future would cancel under the scheduler's hands."""
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    future.add_done_callback(lambda _: loop.call_soon_threadsafe(wake))
    await waiter
    return future.result()
