"""Endpoints beside /generate: health, information, aborts, weight updates, pauses.

One design choice: paths, fields and status codes are SGLang's (and /workers is sglang-router's), so
that code written for a cluster of engines finds the same doors here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from slime_ext.embedded.engine.http import Handler, arrival, guarded, json_answer, read_json
from slime_ext.embedded.engine.protocol import BadRequestError, Limits
from slime_ext.embedded.engine.request import Request as EngineRequest
from slime_ext.embedded.engine.request import SamplingParams
from slime_ext.embedded.engine.scheduler import Scheduler, WeightsRefusedError


class Control:
    """The endpoints over one scheduler; `folder` is the model folder named last."""

    def __init__(
        self, folder: Path, architecture: str, limits: Limits, scheduler: Scheduler
    ) -> None:
        self._folder = folder
        self._architecture = architecture
        self._limits = limits
        self._scheduler = scheduler

    def routes(self) -> list[Route]:
        table: dict[str, tuple[Handler, str]] = {
            "/health": (self.health, "GET"),
            "/health_generate": (self.health_generate, "GET"),
            "/model_info": (self.info, "GET"),
            "/get_model_info": (self.info, "GET"),
            "/server_info": (self.info, "GET"),
            "/get_server_info": (self.info, "GET"),
            "/v1/loads": (self.loads, "GET"),
            "/workers": (self.workers, "GET"),
            "/flush_cache": (self.flush_cache, "GET POST"),
            "/abort_request": (self.abort_request, "POST"),
            "/update_weights_from_disk": (self.update_weights, "POST"),
            "/pause_generation": (self.pause, "POST"),
            "/continue_generation": (self.resume, "POST"),
        }
        return [
            Route(path, guarded(handler), methods=methods.split())
            for path, (handler, methods) in table.items()
        ]

    async def health(self, http: Request) -> Response:
        return Response()

    async def health_generate(self, http: Request) -> Response:
        """Sample one token, unless running requests already show that sampling works."""
        if not any(self._scheduler.load()):
            probe = EngineRequest("health", torch.tensor([0]), SamplingParams(max_new_tokens=1))
            self._scheduler.submit([probe])
            await arrival(probe.answer)
        return Response()

    async def info(self, http: Request) -> Response:
        """Model and server information together; SGLang spreads the same keys over two paths."""
        return json_answer(
            {
                "model_path": str(self._folder),
                "served_model_name": str(self._folder),
                "is_generation": True,
                "model_type": self._architecture,
                "vocab_size": self._limits.vocab_size,
                "context_length": self._limits.context_length,
                "skip_tokenizer_init": True,
                "dp_size": 1,
                # slime compares it before it takes an engine from outside.
                "enable_memory_saver": False,
                "weight_version": self._scheduler.weight_version,
                "version": "longrl",
            }
        )

    async def loads(self, http: Request) -> Response:
        running, waiting = self._scheduler.load()
        load = {
            "dp_rank": 0,
            "num_running_reqs": running,
            "num_waiting_reqs": waiting,
            "num_total_reqs": running + waiting,
        }
        return json_answer({"version": "longrl", "loads": [load]})

    async def workers(self, http: Request) -> Response:
        """A router's list with this engine as its only worker."""
        url = str(http.base_url).rstrip("/")
        worker = {"id": "engine", "url": url, "worker_type": "regular", "is_healthy": True}
        return json_answer({"workers": [worker], "total": 1})

    async def flush_cache(self, http: Request) -> Response:
        """Nothing to do: no cache outlives its wave."""
        return Response("Cache flushed.\n")

    async def abort_request(self, http: Request) -> Response:
        body = await read_json(http)
        rid = body.get("rid")
        if body.get("abort_all"):
            self._scheduler.abort(None)
        elif isinstance(rid, str) and rid:
            self._scheduler.abort(rid)
        else:
            raise BadRequestError('send {"rid": "..."} or {"abort_all": true}')
        return Response()

    async def update_weights(self, http: Request) -> Response:
        body = await read_json(http)
        path, version = body.get("model_path"), body.get("weight_version")
        if not isinstance(path, str) or not isinstance(version, str | None):
            raise BadRequestError(
                'send {"model_path": "FOLDER", "weight_version": "VERSION"}, both strings'
            )
        if body.get("abort_all_requests"):
            self._scheduler.abort(None)
        try:
            served = await arrival(self._scheduler.update_weights(Path(path), version))
        except WeightsRefusedError as error:
            return json_answer(_outcome(False, str(error)), 400)
        self._folder = Path(path)
        return json_answer(_outcome(True, f"serving {path} as weight version {served}"))

    async def pause(self, http: Request) -> Response:
        mode = (await read_json(http)).get("mode", "abort")
        if mode != "abort":
            raise BadRequestError(f'mode = {mode!r} is not supported; send {{"mode": "abort"}}')
        self._scheduler.pause()
        return json_answer({"message": "generation paused", "status": "ok"})

    async def resume(self, http: Request) -> Response:
        self._scheduler.resume()
        return json_answer({"message": "generation continued", "status": "ok"})


def _outcome(success: bool, message: str) -> dict[str, Any]:
    return {"success": success, "message": message, "num_paused_requests": 0}
