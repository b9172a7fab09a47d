"""Runs one wave: a batch of requests from their prompts to their last tokens.

One design choice: all branches of a wave advance in step, and a finished branch is answered at once
but leaves the batch only when an eighth of it has finished: dropping copies the caches, so doing it
for each branch would cost more than the idle rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from slime_ext.embedded.engine.cache import WaveCache
from slime_ext.embedded.engine.model import Decoder
from slime_ext.embedded.engine.request import Completion, Request, aborted, cut, stopped
from slime_ext.embedded.engine.sampling import RowSettings

_IDLE_SHARE = 1 / 8
"""Share of finished rows at which they are dropped."""
_FIRST_STEPS = 64
"""Tokens for which output room is made at first; doubles when full."""


class NotFiniteError(RuntimeError):
    """The model's logits are NaN or infinite: its weights are broken."""


class Wave:
    """The state of one running wave; `run` drives it to the end."""

    def __init__(
        self, model: Decoder, requests: Sequence[Request], weight_version: str = "default"
    ) -> None:
        """Requests are put into an order of their own (by prompt, then seed): the same set gives
        the same matrices, hence bitwise the same numbers, in whatever order it arrived."""
        self._model = model
        self._version = weight_version
        self._requests = sorted(
            requests, key=lambda r: (len(r.prompt), r.prompt_key, r.params.seed, r.rid)
        )
        prompts: list[torch.Tensor] = []
        line_of: list[int] = []
        self._cached: list[int] = []
        previous = None
        for request in self._requests:
            known = request.prompt_key == previous
            previous = request.prompt_key
            if not known:
                prompts.append(request.prompt)
            line_of.append(len(prompts) - 1)
            self._cached.append(len(request.prompt) if known else 0)
        self._prompts = prompts
        # The last token of a response is never fed back, so its keys are not stored.
        most = max(request.params.max_new_tokens for request in requests) - 1
        self._cache = WaveCache(model.shape, [len(p) for p in prompts], line_of, most)
        self._settings = RowSettings([r.params for r in self._requests], model.shape.vocab_size)
        self._live = torch.ones(len(self._requests), dtype=torch.bool)
        """Rows of the batch that still sample."""
        self._tokens = torch.zeros(_FIRST_STEPS, len(self._requests), dtype=torch.int64)
        self._log_probs = torch.zeros(_FIRST_STEPS, len(self._requests))
        self._steps = 0

    @torch.inference_mode()
    def run(self, abort_asked: Callable[[], bool] = lambda: False) -> None:
        """Sample until every request is answered through its future.

        `abort_asked` is polled between tokens; when true, requests marked `aborted` are answered
        with what they have.
        """
        logits = self._model.prefill(self._prompts, self._cache)[self._cache.line_of]
        while True:
            self._advance(logits)
            if abort_asked():
                self._answer_aborted()
            live = int(self._live.sum())
            if live == 0:
                return
            if live <= (1 - _IDLE_SHARE) * len(self._live):
                self._compact()
            logits = self._model.decode(self._tokens[self._steps - 1], self._cache)

    def _advance(self, logits: torch.Tensor) -> None:
        """Choose a token for every row and answer those it finishes."""
        step = self._steps
        if step == len(self._tokens):
            self._tokens = torch.cat([self._tokens, torch.zeros_like(self._tokens)])
            self._log_probs = torch.cat([self._log_probs, torch.zeros_like(self._log_probs)])
        tokens, log_probs = self._settings.choose(logits, step)
        self._tokens[step] = tokens
        self._log_probs[step] = log_probs
        self._steps = step + 1
        ends = self._settings.ends(tokens)
        done = (ends | (self._settings.limit <= step + 1)) & self._live
        if done.any():
            for row in done.nonzero()[:, 0].tolist():
                token = int(tokens[row])
                self._answer(row, stopped(token) if ends[row] else cut(self._steps))

    def _answer_aborted(self) -> None:
        for row, request in enumerate(self._requests):
            if request.aborted and self._live[row]:
                self._answer(row, aborted())

    def _answer(self, row: int, reason: dict[str, object]) -> None:
        self._live[row] = False
        request = self._requests[row]
        log_probs = self._log_probs[: self._steps, row].tolist()
        if not all(map(math.isfinite, log_probs)):
            request.answer.set_exception(
                NotFiniteError(
                    f"logits are not finite under weight version {self._version}; the trainer's "
                    "last update diverged: push an earlier checkpoint"
                )
            )
            return
        request.answer.set_result(
            Completion(
                output_ids=self._tokens[: self._steps, row].tolist(),
                log_probs=log_probs,
                finish_reason=reason,
                cached_tokens=self._cached[row],
                weight_version=self._version,
            )
        )

    def _compact(self) -> None:
        """Drop finished rows from caches, settings and outputs."""
        rows = self._live.nonzero()[:, 0]
        self._cache.keep(rows)
        self._settings.keep(rows)
        self._requests = [self._requests[i] for i in rows.tolist()]
        self._cached = [self._cached[i] for i in rows.tolist()]
        self._tokens = self._tokens[:, rows]
        self._log_probs = self._log_probs[:, rows]
        self._live = torch.ones(len(rows), dtype=torch.bool)
