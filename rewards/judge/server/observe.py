"""Around every request: an id, its duration, one log line, one count.

One design choice: plain ASGI, so that a request that is refused, fails or is cancelled is seen as
surely as one that is answered.
"""

from __future__ import annotations

import re
import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rewards.judge.server.logs import log
from rewards.judge.server.metrics import PATHS, Metrics

REQUEST_ID = "X-Request-ID"
_SAFE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
CLIENT_GONE = 499
"""Counted as status where no answer was sent."""


class Observe:
    """ASGI middleware; handlers may leave counts for the log line in `request.state.counts`."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if _SAFE_ID.fullmatch(given) else uuid.uuid4().hex
        counts: dict[str, int] = {}
        scope.setdefault("state", {})["counts"] = counts
        status, began = CLIENT_GONE, time.monotonic()

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = request_id
            await send(message)

        try:
            await self._app(scope, receive, answer)
        finally:
            seconds = time.monotonic() - began
            self._metrics.answered(scope["path"], status, seconds)
            log(
                "request",
                request_id=request_id,
                path=scope["path"] if scope["path"] in PATHS else "other",
                status=status,
                seconds=round(seconds, 6),
                **counts,
            )
