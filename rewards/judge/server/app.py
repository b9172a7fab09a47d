"""The application: /evaluate, /health and /metrics around one reward.

One design choice: handlers read the raw request themselves. Token, size, time and shape are settled
in that order before a model sees a byte, which FastAPI's own body parameters would undo.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import orjson
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from rewards.base import Reward
from rewards.judge.server.body import RefusedError, read_json
from rewards.judge.server.endpoints import UP
from rewards.judge.server.logs import log
from rewards.judge.server.metrics import Metrics
from rewards.judge.server.observe import Observe
from rewards.judge.server.payloads import own_answer, parse_own
from rewards.judge.server.released import is_released, parse_released, released_answer
from rewards.judge.server.scoring import Scoring
from rewards.judge.server.settings import Guard, ServerSettings
from rewards.types import Score

EndpointStates = Callable[[], Awaitable[Mapping[str, str]]]
"""Address of each judge endpoint and its state, "up" or what is wrong."""


async def no_endpoints() -> Mapping[str, str]:
    """The endpoints of a reward that asks no judge."""
    return {}


class Service:
    """One served reward: what the routes of the application share."""

    def __init__(
        self,
        reward: Reward,
        settings: ServerSettings,
        token: str | None = None,
        endpoints: EndpointStates = no_endpoints,
    ) -> None:
        self.settings = settings
        self.guard = Guard(token)
        self.scoring = Scoring(reward, settings)
        self.metrics = Metrics(reward.outcome.counters)
        self.metrics.watch_outstanding(lambda: self.scoring.outstanding)
        self.endpoints = endpoints
        self.stopping = False
        self._reward = reward

    async def evaluate(self, request: Request) -> Response:
        """Score one response, or several."""
        self._admit(request)
        # Before the body is read: a full service should not hold more of them.
        self.scoring.require_room()
        settings = self.settings
        body = await read_json(request, settings.max_body_bytes, settings.body_timeout_s)
        if is_released(body):
            return await self._evaluate_released(request, body)
        scores = await self._score(request, parse_own(body))
        answers = [own_answer(score) for score in scores]
        return _json({"scores": answers} if "items" in body else answers[0])

    async def health(self, request: Request) -> Response:
        """200 where a verdict can be had, else 503; the endpoints only to who has the token."""
        states = await self.endpoints()
        sick = bool(states) and UP not in states.values()
        status = "stopping" if self.stopping else "judge_down" if sick else "ok"
        answer: dict[str, Any] = {"status": status}
        if self.guard.admits(request.headers.get("authorization")):
            answer |= {"endpoints": dict(states), "outstanding": self.scoring.outstanding}
        return _json(answer, 200 if status == "ok" else 503)

    async def show_metrics(self, request: Request) -> Response:
        """Prometheus' text format."""
        self._admit(request)
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def aclose(self) -> None:
        """Close the judge: its connections end and its cache is written out."""
        await self._reward.outcome.aclose()

    async def _evaluate_released(self, request: Request, body: Mapping[str, Any]) -> Response:
        item = parse_released(body, self._reward.family)
        (score,) = await self._score(request, [item])
        if score.total is None:
            # Its client would read any number, and null ends its run; it asks again on 503.
            answer = own_answer(score) | {"error": f"no verdict: {score.reason}"}
            return _json(answer, 503, self.settings.retry_after_s)
        return _json(released_answer(score, item.response.evaluation))

    async def _score(self, request: Request, items: list[Any]) -> list[Score]:
        scores = await self.scoring.score(items)
        self.metrics.scored(scores)
        missing = sum(score.total is None for score in scores)
        request.state.counts.update(items=len(scores), undetermined=missing)
        return scores

    def _admit(self, request: Request) -> None:
        if not self.guard.admits(request.headers.get("authorization")):
            raise RefusedError(401, "send the header Authorization: Bearer TOKEN")
        if self.stopping:
            raise RefusedError(503, "the service is stopping", self.settings.retry_after_s)


def build_app(service: Service) -> FastAPI:
    """The ASGI application; leaving its lifespan closes the judge."""

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await service.aclose()
        log("closed")

    app = FastAPI(title="LongRL reward", lifespan=lifespan, openapi_url=None)
    app.add_api_route("/evaluate", service.evaluate, methods=["POST"], response_model=None)
    app.add_api_route("/health", service.health, methods=["GET"], response_model=None)
    app.add_api_route("/metrics", service.show_metrics, methods=["GET"], response_model=None)
    app.add_exception_handler(RefusedError, _refuse)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_middleware(Observe, metrics=service.metrics)
    return app


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    answer = _json({"error": error.message}, error.status, error.retry_after_s)
    if error.status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    if error.status in (408, 413):
        # The rest of the body is not read; the connection cannot be used again.
        answer.headers["Connection"] = "close"
    return answer


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    known = "POST /evaluate, GET /health, GET /metrics"
    return _json({"error": f"{error.detail}; this service has {known}"}, error.status_code)


def _json(value: Any, status: int = 200, retry_after_s: int | None = None) -> Response:
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    return Response(orjson.dumps(value), status, headers, "application/json")
