"""One attempt: a POST, the whole reply within its time and size, and what a failure means.

One design choice: the body is read piece by piece, uncompressed, under one timeout over the whole
attempt. httpx times each read, so a server that drips a byte a second would never time out; and a
compressed body could grow past any limit in one piece.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

import httpx
import orjson

from rewards.judge.backoff import retry_after_s
from rewards.judge.completions import error_code, read_reply
from rewards.judge.types import ChatReply, NoReplyError, NoReplyReason

MAX_BODY_BYTES = 1 << 20
"""Ten times the longest reply of a thinking judge at 32,000 tokens."""

RETRIED: frozenset[NoReplyReason] = frozenset(
    ("connect", "timeout", "rate_limited", "server_error")
)
"""Failures after which the same request may succeed, there or elsewhere."""
MISCONFIGURED: frozenset[NoReplyReason] = frozenset(("unauthorised", "not_found"))
"""Failures of an endpoint that only its owner can end; others may serve the request."""


class AttemptError(NoReplyError):
    """A failed attempt; `retry_after_s` is what the server asked for, in seconds."""

    def __init__(
        self, reason: NoReplyReason, detail: str, retry_after_s: float | None = None
    ) -> None:
        super().__init__(reason, detail)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True)
class Answer:
    """Whatever the server answered, once it is complete. `cut` if it was longer than allowed.

    The payload stays out of the repr: it holds contents, and some servers repeat the key in it.
    """

    status: int
    headers: httpx.Headers
    payload: bytes = field(repr=False)
    cut: bool

    def reply(self) -> ChatReply:
        """The reply in it; AttemptError by status and form, NoReplyError by content."""
        if self.status != 200:
            raise self._refusal()
        if self.cut:
            raise AttemptError("too_large", f"the body is longer than {MAX_BODY_BYTES} bytes")
        if self.headers.get("content-encoding", "identity") != "identity":
            raise AttemptError("bad_json", "the body is compressed, although asked not to be")
        return read_reply(self.payload)

    def _refusal(self) -> AttemptError:
        try:
            code = error_code(orjson.loads(self.payload))
        except orjson.JSONDecodeError:
            code = ""
        detail = f"status {self.status}{code}"
        asked = retry_after_s(self.headers.get("retry-after"), time.time())
        if self.status == 429:
            return AttemptError("rate_limited", detail, asked)
        if self.status >= 500:
            return AttemptError("server_error", detail, asked)
        if self.status in (401, 403):
            return AttemptError("unauthorised", detail)
        if self.status == 404 or 300 <= self.status < 400:
            # A redirect is not followed: that could carry the key to another host.
            return AttemptError("not_found", detail)
        return AttemptError("refused_request", detail)


async def post(
    client: httpx.AsyncClient, url: str, headers: httpx.Headers, body: bytes, timeout_s: float
) -> Answer:
    """The answer to `body` within `timeout_s`; AttemptError "timeout" or "connect" without one."""
    try:
        async with (
            asyncio.timeout(timeout_s),
            client.stream("POST", url, content=body, headers=headers) as response,
        ):
            payload, cut = await _read_capped(response)
    except TimeoutError:
        raise AttemptError("timeout", f"no whole reply within {timeout_s:g} s") from None
    except httpx.ConnectError as error:
        raise AttemptError("connect", str(error)) from None
    except httpx.TransportError as error:
        raise AttemptError("connect", type(error).__name__) from None
    return Answer(response.status_code, response.headers, payload, cut)


async def _read_capped(response: httpx.Response) -> tuple[bytes, bool]:
    """The body up to the limit, and whether there was more, which is then not read."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_raw():
        size += len(piece)
        if size > MAX_BODY_BYTES:
            return b"", True
        pieces.append(piece)
    return b"".join(pieces), False
