"""Choosing the next token of every branch from its logits.

One design choice: the random number of a request's token t is a hash of (seed, t), and every branch
inverts its distribution in vocabulary order; so a response depends neither on its neighbours in the
batch nor on their settings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from slime_ext.embedded.engine.request import WHOLE_VOCABULARY, SamplingParams

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_BLOCK = 64
"""Steps whose random numbers are drawn in one go."""


def _mix(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Output function of splitmix64 (Steele, Lea and Flood, 2014); wraps modulo 2^64."""
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))


def uniforms(seeds: Sequence[int], start: int, count: int) -> torch.Tensor:
    """Numbers in (0, 1) for tokens start .. start + count - 1 of each seed, float64 [n, count].

    32 random bits, centred: neither 0 nor 1 can occur, so a token of probability 0 is never drawn.
    """
    wrapped = np.array([seed & 0xFFFFFFFFFFFFFFFF for seed in seeds], dtype=np.uint64)
    steps = np.arange(start + 1, start + count + 1, dtype=np.uint64) * _GOLDEN
    bits = _mix(_mix(wrapped)[:, None] + steps) >> np.uint64(32)
    return torch.from_numpy((bits.astype(np.float64) + 0.5) * 2.0**-32)


def truncate(probabilities: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """`probabilities` [n, V] with excluded tokens set to 0, not renormalised.

    A token stays if fewer than top_k [n] rank above it (ties: lower id first) and the mass above it
    is at most top_p [n]; both see the whole distribution, as in SGLang.
    """
    vocab = probabilities.shape[1]
    limits = torch.where(top_k == WHOLE_VOCABULARY, vocab, top_k).clamp(max=vocab)
    ranked, ids = probabilities.sort(dim=-1, descending=True, stable=True)
    above = ranked.cumsum(-1, dtype=torch.float64) - ranked
    out = (torch.arange(vocab) >= limits[:, None]) | (above > top_p[:, None])
    return torch.zeros_like(probabilities).scatter_(1, ids, ranked.masked_fill_(out, 0.0))


class RowSettings:
    """Sampling parameters of N branches as tensors, with the steps' random numbers."""

    def __init__(self, params: Sequence[SamplingParams], vocab_size: int) -> None:
        self._params = list(params)
        self._vocab = vocab_size
        stops = sorted({p.stop_token_ids for p in params}, key=sorted)
        self._stop_table = torch.zeros(len(stops), vocab_size, dtype=torch.bool)
        for row, ids in enumerate(stops):
            self._stop_table[row, [i for i in ids if i < vocab_size]] = True
        self._stop_table = self._stop_table.view(-1)
        index = {ids: row for row, ids in enumerate(stops)}
        self._stop_row = torch.tensor([index[p.stop_token_ids] * vocab_size for p in params])
        self._arrange()

    def _arrange(self) -> None:
        params = self._params
        self.limit = torch.tensor([p.max_new_tokens for p in params])
        self._greedy = torch.tensor([p.greedy for p in params])
        self._any_greedy = bool(self._greedy.any())
        temperature = [1.0 if p.greedy else p.temperature for p in params]
        self._temperature = (
            None if set(temperature) == {1.0} else torch.tensor(temperature)[:, None]
        )
        rows = [i for i, p in enumerate(params) if p.truncated]
        self._truncated = torch.tensor(rows, dtype=torch.int64)
        self._top_k = torch.tensor([params[i].top_k for i in rows])
        self._top_p = torch.tensor([params[i].top_p for i in rows], dtype=torch.float64)
        self._block = (-1, torch.empty(0))

    def keep(self, rows: torch.Tensor) -> None:
        """Drop every branch but `rows`."""
        self._params = [self._params[i] for i in rows.tolist()]
        self._stop_row = self._stop_row[rows]
        self._arrange()

    def _uniform(self, step: int) -> torch.Tensor:
        block, place = divmod(step, _BLOCK)
        if self._block[0] != block:
            seeds = [p.seed for p in self._params]
            self._block = (block, uniforms(seeds, block * _BLOCK, _BLOCK))
        return self._block[1][:, place : place + 1]

    def choose(self, logits: torch.Tensor, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Token `step` of each branch and its log-probability, int64 [N] and float32 [N].

        The log-probability is that of the untruncated distribution, NaN where logits are NaN.
        """
        scaled = logits if self._temperature is None else logits / self._temperature
        log_probs = scaled.log_softmax(-1)
        weights = log_probs.exp()
        if len(self._truncated):
            weights[self._truncated] = truncate(weights[self._truncated], self._top_k, self._top_p)
        cumulative = weights.cumsum(-1, dtype=torch.float64)
        target = self._uniform(step) * cumulative[:, -1:]
        tokens = torch.searchsorted(cumulative, target, right=True)[:, 0]
        # Only NaN logits search past the end; their log-probability tells the sampler.
        tokens.clamp_(max=self._vocab - 1)
        if self._any_greedy:
            tokens = torch.where(self._greedy, logits.argmax(-1), tokens)
        return tokens, log_probs.gather(1, tokens[:, None])[:, 0]

    def ends(self, tokens: torch.Tensor) -> torch.Tensor:
        """Whether each branch's token [N] is one of its stop tokens, bool [N]."""
        return self._stop_table[self._stop_row + tokens]
