"""The engine as an HTTP server that speaks SGLang's /generate.

    python -m slime_ext.embedded.engine.server --model DIR --port 30000 --batch 128

One design choice: the event loop only parses and serialises; every piece of work crosses to the
scheduler's thread and comes back through a future.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from slime_ext.embedded.engine.control import Control
from slime_ext.embedded.engine.http import Handler, arrival, guarded, json_answer, read_json
from slime_ext.embedded.engine.model import Decoder
from slime_ext.embedded.engine.protocol import Limits, answer, parse_generate
from slime_ext.embedded.engine.scheduler import Scheduler


def build_app(folder: Path, batch: int, weight_version: str = "default") -> Starlette:
    """The application serving the Hugging Face folder; its scheduler is `app.state.scheduler`."""
    model = Decoder(folder)
    shape = model.shape
    limits = Limits(shape.vocab_size, shape.max_position_embeddings, eos_token_ids(folder))
    scheduler = Scheduler(model, batch, weight_version)
    control = Control(folder, shape.architecture, limits, scheduler)
    generate = Route("/generate", guarded(_generate(limits, scheduler)), methods=["POST", "PUT"])
    app = Starlette(routes=[generate, *control.routes()])
    app.state.scheduler = scheduler
    return app


def eos_token_ids(folder: Path) -> frozenset[int]:
    """End-of-sequence ids by generation_config.json and config.json together."""
    ids: set[int] = set()
    for name in ("generation_config.json", "config.json"):
        path = folder / name
        value = json.loads(path.read_text()).get("eos_token_id") if path.is_file() else None
        if value is not None:
            ids.update(value if isinstance(value, list) else [value])
    return frozenset(ids)


def _generate(limits: Limits, scheduler: Scheduler) -> Handler:
    async def generate(http: Request) -> Response:
        call = parse_generate(await read_json(http), limits)
        scheduler.submit(call.requests)
        waiting = asyncio.gather(*(arrival(request.answer) for request in call.requests))
        # The body has been read, so the next message can only be the client's disconnect: a client
        # that gave up must not keep rows busy beside its own retry.
        gone = asyncio.ensure_future(http.receive())
        both: set[asyncio.Future[Any]] = {waiting, gone}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            for request in call.requests:
                scheduler.abort(request.rid)
        gone.cancel()
        answers = [
            answer(request, completion, call.return_logprob)
            for request, completion in zip(call.requests, await waiting, strict=True)
        ]
        return json_answer(answers if call.batched else answers[0])

    return generate


def main() -> None:
    """Serve until terminated."""
    parser = argparse.ArgumentParser(prog="python -m slime_ext.embedded.engine.server")
    parser.add_argument("--model", type=Path, required=True, help="Hugging Face model folder")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=30000)
    parser.add_argument("--batch", type=int, default=128, help="responses sampled together")
    parser.add_argument("--threads", type=int, default=1, help="threads of a matrix product")
    parser.add_argument("--weight-version", default="default")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    uvicorn.run(
        build_app(options.model, options.batch, options.weight_version),
        host=options.host,
        port=options.port,
        http="httptools",
        loop="uvloop",
        lifespan="off",
        log_level="warning",
        access_log=False,
    )


if __name__ == "__main__":
    main()
