"""Log-probabilities of given tokens with the language model head inside the chunk.

One design choice: the backward pass recomputes each chunk's logits instead of keeping softmaxes,
so the peak holds two chunks of logits whatever the number of tokens (at 4,096 tokens and a
vocabulary of 151,936 one full copy of the logits alone is 2,374 MiB).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def chunked_log_probs(
    hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float, chunk: int
) -> tuple[Tensor, Tensor]:
    """Log-probability of each target and entropy of each distribution, both [N], in nats.

    `hidden` [N, H] before the head `weight` [V, H]; `targets` [N] token ids; logits are divided by
    `temperature`; `chunk` is how many tokens' logits exist at once. Gradients flow to `hidden` and
    `weight` through the log-probabilities; the entropy carries none.
    """
    if chunk < 1 or temperature <= 0:
        raise ValueError(f"chunk = {chunk} and temperature = {temperature} must both be positive")
    log_probs, entropy = _ChunkedLogProbs.apply(hidden, weight, targets, temperature, chunk)
    return log_probs, entropy


class _ChunkedLogProbs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float, chunk: int
    ) -> tuple[Tensor, Tensor]:
        log_probs, normaliser, entropy = (hidden.new_empty(len(hidden)) for _ in range(3))
        for part in _slices(len(hidden), chunk):
            logits = _logits(hidden[part], weight, temperature)
            peak = logits.amax(-1)
            logits -= peak.unsqueeze(-1)
            chosen = logits.gather(-1, targets[part].unsqueeze(-1)).squeeze(-1)
            weights = logits.exp()
            total = weights.sum(-1)
            # Entropy = log Z - E[logit]; the product reuses the logits' memory.
            expected = logits.mul_(weights).sum(-1) / total
            log_total = total.log()
            log_probs[part] = chosen - log_total
            entropy[part] = log_total - expected
            normaliser[part] = log_total + peak
        ctx.save_for_backward(hidden, weight, targets, normaliser)
        ctx.temperature, ctx.chunk = temperature, chunk
        ctx.mark_non_differentiable(entropy)
        return log_probs, entropy

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        hidden, weight, targets, normaliser = ctx.saved_tensors
        grad = grads[0] / ctx.temperature
        d_hidden, d_weight = torch.empty_like(hidden), torch.zeros_like(weight)
        for part in _slices(len(hidden), ctx.chunk):
            logits = _logits(hidden[part], weight, ctx.temperature)
            # d log p(target) / d logits = one-hot(target) - softmax.
            slope = logits.sub_(normaliser[part].unsqueeze(-1)).exp_()
            slope *= -grad[part].unsqueeze(-1)
            slope.scatter_add_(-1, targets[part].unsqueeze(-1), grad[part].unsqueeze(-1))
            torch.mm(slope, weight, out=d_hidden[part])
            d_weight.addmm_(slope.t(), hidden[part])
        return d_hidden, d_weight, None, None, None


def _logits(hidden: Tensor, weight: Tensor, temperature: float) -> Tensor:
    logits = hidden @ weight.t()
    return logits if temperature == 1.0 else logits.div_(temperature)


def _slices(total: int, chunk: int) -> list[slice]:
    return [slice(start, min(start + chunk, total)) for start in range(0, total, chunk)]
