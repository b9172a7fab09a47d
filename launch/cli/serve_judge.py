"""`longrl serve-judge`: the reward of a recipe as an HTTP service."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from launch.cli.options import Overrides, RecipePath
from rewards.base import Reward
from rewards.outcome import make_outcome
from rewards.parsing.families import FAMILIES
from rewards.registry import build_reward
from slime_ext.errors import ExplainedError
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe

if TYPE_CHECKING:
    from rewards.judge.server.app import Service
    from rewards.judge.server.settings import ServerSettings


def serve_judge(
    recipe: RecipePath,
    overrides: Overrides = (),
    host: str = "127.0.0.1",
    port: int = 8765,
    token_env: str | None = None,
    token_file: Path | None = None,
    max_body: int = 4 * 1024 * 1024,
    concurrency: int = 256,
    waiting: int = 2048,
    timeout: float = 600.0,
    drain: float = 30.0,
) -> int:
    """Serve a recipe's reward, judge and verdict cache included, to several jobs.

    POST /evaluate, GET /health, GET /metrics; the payloads are in rewards/judge/server/README.md.

    Args:
        recipe: The recipe; its sections reward, outcome and model.family are used.
        overrides: Changes of single keys.
        host: Address to listen on; any other than this machine's own needs a token.
        port: Port to listen on; 0 takes a free one, which the first log line names.
        token_env: Environment variable that holds the token.
        token_file: File of mode 600 that holds the token.
        max_body: Largest request in bytes.
        concurrency: Responses scored at the same time.
        waiting: Responses that may wait for a place; further ones are answered 503.
        timeout: Seconds for the scores of one request.
        drain: Seconds for requests under way when told to stop.
    """
    loaded = load_recipe(recipe, overrides).recipe
    _require_extra()
    from rewards.judge.server.serve import bind, serve
    from rewards.judge.server.settings import (
        ServerSettings,
        read_token,
        require_token_beyond_loopback,
    )

    settings = ServerSettings(
        max_body_bytes=max_body,
        request_timeout_s=timeout,
        concurrency=concurrency,
        waiting=waiting,
        drain_s=drain,
        outcome_only=loaded.data.missing_gold == "outcome_only",
    )
    try:
        token = read_token(token_env, token_file)
        require_token_beyond_loopback(host, token)
        service = _service(loaded, settings, token)
        listening = bind(host, port)
    except FileNotFoundError:
        raise
    except (ValueError, OSError) as error:
        raise ExplainedError(str(error)) from error
    serve(service, listening)
    return 0


def _service(recipe: Recipe, settings: ServerSettings, token: str | None) -> Service:
    from rewards.judge.server.app import Service, no_endpoints
    from rewards.judge.server.endpoints import EndpointProbe

    endpoints = no_endpoints
    if recipe.outcome.kind == "judge":
        judge = recipe.outcome.judge
        if judge.deadline_s >= settings.request_timeout_s:
            raise ValueError(
                f"--timeout {settings.request_timeout_s:g} is not above outcome.judge.deadline_s = "
                f"{judge.deadline_s:g}: a verdict may take longer than its request; raise "
                "--timeout or lower the deadline"
            )
        endpoints = EndpointProbe(judge).states
    return Service(_reward(recipe), settings, token, endpoints)


def _reward(recipe: Recipe) -> Reward:
    section = recipe.reward
    config = getattr(section, section.kind, section.options)
    family = FAMILIES[recipe.model.family]
    return build_reward(section.kind, config, family, make_outcome(recipe.outcome))


def _require_extra() -> None:
    missing = [
        name
        for name in ("fastapi", "uvicorn", "prometheus_client")
        if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise ExplainedError(f"serve-judge needs {', '.join(missing)}; pip install 'longrl[serve]'")
