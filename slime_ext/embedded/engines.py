"""Which rollout engine the recipe asks for, behind one interface.

One design choice: both are child processes that speak HTTP, so the loop, the client and the failure
handling are the same for ours and for the real SGLang.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from slime_ext.embedded.engine.process import EngineProcess
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe


class _Process(Protocol):
    def start(self) -> str: ...
    def alive(self) -> bool: ...
    def restart(self) -> str: ...
    def update_weights(self, folder: Path, version: int) -> None: ...
    def stop(self) -> None: ...
    def cpu_seconds(self) -> float: ...


class EngineHandle:
    """An engine process addressed by host and port."""

    def __init__(self, process: _Process) -> None:
        self.process = process
        self.alive = process.alive
        self.restart = process.restart
        self.update_weights = process.update_weights
        self.stop = process.stop
        self.cpu_seconds = process.cpu_seconds

    def start(self) -> tuple[str, int]:
        """Start and wait until healthy; host and port stay the same over restarts."""
        url = urlsplit(self.process.start())
        assert url.hostname is not None
        assert url.port is not None
        return url.hostname, url.port


def make_engine(recipe: Recipe, folder: RunFolder, attempt: int) -> EngineHandle:
    """The engine of `recipe.embedded.engine`, not yet started."""
    log = folder.path / "attempts" / str(attempt) / "logs" / "engine.log"
    model = Path(recipe.model.path)
    if recipe.embedded.engine == "sglang":
        from slime_ext.embedded.sglang.process import SglangProcess

        return EngineHandle(SglangProcess(model, batch=recipe.embedded.engine_batch, log=log))
    return EngineHandle(EngineProcess(model, batch=recipe.embedded.engine_batch, log=log))
