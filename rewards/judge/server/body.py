"""Reading a request body within limits of size, time and shape.

One design choice: the body is counted as it arrives and judged before it is parsed into models, so
neither a false Content-Length nor a deep or wide document costs more than the limit says.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request

MAX_DEPTH = 12
"""Own payloads need 5 levels (items, task, gold_entities, entity, alias), metadata some more."""
MAX_VALUES = 200_000
"""Values of one document, keys not counted."""


class RefusedError(Exception):
    """A request that is answered with an error; `message` holds nothing of its contents."""

    def __init__(self, status: int, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after_s = retry_after_s


async def read_json(request: Request, max_bytes: int, timeout_s: float) -> dict[str, Any]:
    """The JSON object in the body.

    Raises RefusedError: 400 not an object of JSON, or the client left; 408 too slow; 413 too large;
    415 another content type; 422 too deep or too many values.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        # A page in a browser on this machine cannot send this type across origins unasked.
        raise RefusedError(415, "send Content-Type: application/json")
    try:
        async with asyncio.timeout(timeout_s):
            raw = await _read(request, max_bytes)
    except TimeoutError:
        raise RefusedError(408, f"the body did not arrive within {timeout_s:g} s") from None
    except ClientDisconnect:
        raise RefusedError(400, "the client left before its body had arrived") from None
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise RefusedError(400, f"the body is not JSON: byte {error.pos}") from None
    if not isinstance(value, dict):
        raise RefusedError(400, "the body must be a JSON object")
    check_shape(value)
    return value


def check_shape(value: Any) -> None:
    """RefusedError 422 for a document deeper than MAX_DEPTH or of more than MAX_VALUES values."""
    level, depth, values = [value], 0, 0
    while level:
        values += len(level)
        if values > MAX_VALUES:
            raise RefusedError(422, f"more than {MAX_VALUES} values; send fewer items a request")
        if depth > MAX_DEPTH:
            raise RefusedError(422, f"nested deeper than {MAX_DEPTH} levels")
        level = [child for one in level for child in _children(one)]
        depth += 1


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


async def _read(request: Request, max_bytes: int) -> bytes:
    too_large = RefusedError(
        413, f"the body exceeds {max_bytes} bytes; send fewer items a request, or raise --max-body"
    )
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared[:20]) > max_bytes:
        raise too_large
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > max_bytes:
            raise too_large
        parts.append(part)
    return b"".join(parts)
