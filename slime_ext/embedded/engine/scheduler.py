"""Collects requests into waves and runs them on one thread.

One design choice: waves do not admit late arrivals. A training step sends its requests together, so
a wave that starts when arrivals pause holds the whole step, and its branches share every prompt.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from safetensors import SafetensorError

from slime_ext.embedded.engine.cache import cache_bytes
from slime_ext.embedded.engine.model import Decoder
from slime_ext.embedded.engine.request import Completion, Request, aborted
from slime_ext.embedded.engine.sampler import Wave

_QUIET_S = 0.02
"""A wave starts when no request has arrived for this long."""
_LONGEST_WAIT_S = 0.2
"""A wave starts at the latest when its oldest request has waited this long."""
_CACHE_BYTES = 4 * 2**30
"""Keys and values of one wave at most; a single request may exceed it."""


class WeightsRefusedError(RuntimeError):
    """A folder could not be loaded; the weights served before stay."""


class Scheduler:
    """Owns the model; every method may be called from any thread."""

    def __init__(self, model: Decoder, batch: int, weight_version: str = "default") -> None:
        """`batch` is the largest number of responses sampled at the same time."""
        self._model = model
        self._batch = batch
        self._weight_version = weight_version
        self._queue: deque[Request] = deque()
        self._running: list[Request] = []
        self._updates: deque[tuple[Path, str | None, Future[str]]] = deque()
        self._last_arrival = 0.0
        self._paused = self._stopping = self._abort_asked = False
        self._wake = threading.Condition()
        self._thread = threading.Thread(target=self._serve, name="scheduler", daemon=True)
        self._thread.start()

    @property
    def weight_version(self) -> str:
        return self._weight_version

    def load(self) -> tuple[int, int]:
        """Requests running and requests waiting."""
        with self._wake:
            return sum(not r.answer.done() for r in self._running), len(self._queue)

    def submit(self, requests: Sequence[Request]) -> None:
        """Queue requests; together means into the same wave where they fit."""
        with self._wake:
            for request in requests:
                if request.params.max_new_tokens == 0:
                    self._answer_unstarted(request, {"type": "length", "length": 0})
                else:
                    self._queue.append(request)
            self._last_arrival = time.monotonic()
            self._wake.notify()

    def abort(self, rid: str | None) -> None:
        """End the request called `rid`, or all with None; each is answered with what it has."""
        with self._wake:
            kept: deque[Request] = deque()
            for request in self._queue:
                if rid is None or request.rid == rid:
                    self._answer_unstarted(request, aborted())
                else:
                    kept.append(request)
            self._queue = kept
            for request in self._running:
                if rid is None or request.rid == rid:
                    request.aborted = True
                    self._abort_asked = True

    def pause(self) -> None:
        """Abort everything and start no wave until `resume`; requests are still accepted."""
        with self._wake:
            self._paused = True
        self.abort(None)

    def resume(self) -> None:
        with self._wake:
            self._paused = False
            self._wake.notify()

    def update_weights(self, folder: Path, version: str | None) -> Future[str]:
        """Load `folder` after the running wave; the future gives the version then served, or
        raises WeightsRefusedError."""
        done: Future[str] = Future()
        with self._wake:
            self._updates.append((folder, version, done))
            self._wake.notify()
        return done

    def stop(self) -> None:
        """Abort everything and end the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self.abort(None)
        self._thread.join()

    def _answer_unstarted(self, request: Request, reason: dict[str, object]) -> None:
        request.answer.set_result(Completion([], [], reason, 0, self._weight_version))

    def _serve(self) -> None:
        told = False
        try:
            while self._next():
                pass
            told = True
        finally:
            if not told:
                # Nobody would answer the waiting requests any more; a dead process is restarted.
                traceback.print_exc()
                os._exit(70)

    def _next(self) -> bool:
        """Wait for the next piece of work and do it; False when told to stop."""
        with self._wake:
            while not (self._updates or self._stopping or self._ready()):
                self._wake.wait(self._patience())
            if self._stopping:
                return False
            if self._updates:
                update = self._updates.popleft()
            else:
                update = None
                self._running = self._take()
                self._abort_asked = False
        if update is not None:
            self._load(*update)
            return True
        Wave(self._model, self._running, self._weight_version).run(self._poll_abort)
        self._running = []
        return True

    def _poll_abort(self) -> bool:
        # Cleared before the sampler looks at the requests, and `abort` marks the request before it
        # sets this, so no abort is lost without a lock between tokens.
        if not self._abort_asked:
            return False
        self._abort_asked = False
        return True

    def _ready(self) -> bool:
        if self._paused or not self._queue:
            return False
        return len(self._queue) >= self._batch or time.monotonic() >= self._due()

    def _due(self) -> float:
        """When the next wave starts though it is not full."""
        return min(self._last_arrival + _QUIET_S, self._queue[0].arrived + _LONGEST_WAIT_S)

    def _patience(self) -> float | None:
        """Seconds after which `_ready` becomes true by itself; None while nothing waits."""
        if self._paused or not self._queue:
            return None
        return max(0.0, self._due() - time.monotonic())

    def _take(self) -> list[Request]:
        """The next wave: prompts in order of first arrival, each with all its waiting requests."""
        by_prompt: dict[bytes, list[Request]] = {}
        for request in self._queue:
            by_prompt.setdefault(request.prompt_key, []).append(request)
        wave: list[Request] = []
        tokens = 0
        for group in by_prompt.values():
            tokens += len(group[0].prompt)
            for request in group:
                tokens += request.params.max_new_tokens
                too_large = cache_bytes(self._model.shape, tokens) > _CACHE_BYTES
                if len(wave) == self._batch or (wave and too_large):
                    break
                wave.append(request)
            else:
                continue
            break
        taken = set(map(id, wave))
        self._queue = deque(request for request in self._queue if id(request) not in taken)
        return wave

    def _load(self, folder: Path, version: str | None, done: Future[str]) -> None:
        try:
            self._model.reload(folder)
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            done.set_exception(WeightsRefusedError(str(error)))
            return
        if version is not None:
            self._weight_version = version
        done.set_result(self._weight_version)
