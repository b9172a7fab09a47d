"""What the engine is asked for and what it gives back, free of HTTP.

One design choice: a request carries the future of its answer, so scheduler and sampler need to know
nothing about who waits for it.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import torch

WHOLE_VOCABULARY = -1
GREEDY_BELOW = 1e-6
"""Temperatures below this are greedy (SGLang's rule)."""


@dataclass(slots=True)
class SamplingParams:
    """How one response is sampled; names and defaults are SGLang's."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = WHOLE_VOCABULARY
    max_new_tokens: int = 128
    stop_token_ids: frozenset[int] = frozenset()
    """All tokens that end a response, the model's own included."""
    seed: int = 0
    """Any 64-bit integer; the response is a function of prompt, weights, parameters and this."""

    @property
    def greedy(self) -> bool:
        return self.temperature < GREEDY_BELOW

    @property
    def truncated(self) -> bool:
        """Whether top-k or top-p can exclude a token."""
        return not self.greedy and (self.top_p < 1.0 or self.top_k != WHOLE_VOCABULARY)


@dataclass(slots=True)
class Completion:
    """One sampled response; `finish_reason` has SGLang's form."""

    output_ids: list[int]
    log_probs: list[float]
    """log_softmax(logits / temperature) of each token, untruncated; temperature 1 if greedy."""
    finish_reason: dict[str, Any]
    cached_tokens: int
    """Prompt tokens computed for another request of the same wave."""
    weight_version: str


@dataclass(slots=True)
class Request:
    """One prompt to continue once."""

    rid: str
    prompt: torch.Tensor
    """int64 [p]."""
    params: SamplingParams
    answer: Future[Completion] = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)
    aborted: bool = False
    prompt_key: bytes = b""
    """Equal for equal prompts."""

    def __post_init__(self) -> None:
        self.prompt_key = self.prompt.numpy().tobytes()


def stopped(token: int) -> dict[str, Any]:
    """Finish reason of a response that ended with a stop token."""
    return {"type": "stop", "matched": token}


def cut(length: int) -> dict[str, Any]:
    """Finish reason of a response that reached max_new_tokens."""
    return {"type": "length", "length": length}


def aborted() -> dict[str, Any]:
    """Finish reason of a response that was aborted."""
    return {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
