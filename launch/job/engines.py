"""The engines of a run as they are when it is stuck: does each answer, and what does it do?

One design choice: every question has a short limit of its own and its answer is kept as it came, an
error included, because what does not answer is what is looked for.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx

from slime_ext.rollout.engine_address import noted_router
from slime_ext.rollout.workers import listed

TIMEOUT_S = 5.0
AT_ONCE = 32


@dataclass
class EngineState:
    """A router, what it says of its workers, and what each of them says itself."""

    router: str | None = None
    error: str | None = None
    """Why the router's list is not known."""
    workers: list[dict[str, Any]] = field(default_factory=list)
    """`url`, `listed` (the router's words), `health` and `loads` (answers or errors)."""

    def describe(self) -> str:
        """One line."""
        if self.router is None:
            return "no request was made to an engine yet"
        if self.error is not None:
            return f"the router at {self.router} gives no workers: {self.error}"
        silent = [one["url"] for one in self.workers if one["health"] != 200]
        said = f"{len(self.workers) - len(silent)} of {len(self.workers)} engines answer"
        return f"{said}; not: {', '.join(silent)}" if silent else said

    def to_json(self) -> dict[str, Any]:
        """Everything."""
        return asdict(self)


def engine_state(run: Path) -> EngineState:
    """Ask the router of the run in `run`, then each of its workers."""
    state = EngineState(noted_router(run))
    if state.router is None:
        return state
    # A proxy of the site does not know the nodes.
    with httpx.Client(timeout=TIMEOUT_S, trust_env=False) as client:
        answer = _ask(client, f"{state.router}/workers")
        workers = listed(answer)
        if workers is None:
            state.error = str(answer)
            return state
        with ThreadPoolExecutor(AT_ONCE) as pool:
            state.workers = list(pool.map(lambda one: _worker(client, one), workers))
    return state


def _worker(client: httpx.Client, said: dict[str, Any]) -> dict[str, Any]:
    url = str(said.get("url", "")).partition("@")[0].rstrip("/")
    try:
        health: int | str = client.get(f"{url}/health").status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        health = repr(error)
    loads = _ask(client, f"{url}/v1/loads?include=core")
    return {"url": url, "listed": said, "health": health, "loads": loads}


def _ask(client: httpx.Client, url: str) -> Any:
    """The parsed answer, or a sentence that says why there is none."""
    try:
        answer = client.get(url)
        return answer.json() if answer.is_success else f"status {answer.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return repr(error)
