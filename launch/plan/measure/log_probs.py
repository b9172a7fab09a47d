"""Log-probabilities over a share of the vocabulary, with the copies that slime makes of logits.

One design choice: each host is followed tensor by tensor, and left to torch's autograd where it
leaves it, because the copies nobody planned (of slices, in `chunk` and `cat`) are the peak.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from launch.plan.measure.share import Share


def policy_loss(logits: Tensor, targets: Tensor, share: Share, chunk: int | None) -> Tensor:
    """Minus the mean log-probability of `targets` [tokens] under fp32 `logits` [tokens, vocab].

    `chunk` rows at once, or None for all. v0.3.1 looks at all rows and computes entropy without a
    copy; v0.2.4 (where `share.response_rows` is given) looks at those, on copies of its own, and
    keeps the softmax of the entropy too in a pass with gradients.
    """
    if share.temperature != 1.0:
        logits = logits / share.temperature
    if share.response_rows is None:
        return -_in_chunks(_LogProbs, logits, targets, chunk, in_place=False).mean()
    logits, targets = (_response(t, share.response_rows, share.cp) for t in (logits, targets))
    loss = -_in_chunks(_LogProbs, logits, targets, chunk, in_place=True).mean()
    if torch.is_grad_enabled():
        loss = loss - 0.0 * _in_chunks(_Entropy, logits, targets, chunk, in_place=True).mean()
    return loss


def _response(tensor: Tensor, rows: int, ranks: int) -> Tensor:
    """The last `rows`; under context parallel they come from two pieces, which are joined."""
    if ranks == 1:
        return tensor[len(tensor) - rows :]
    half = len(tensor) // 2
    last = min(rows, half)
    first = rows - last
    return torch.cat([tensor[:half][half - first :], tensor[half:][half - last :]])


def _in_chunks(
    function: type[torch.autograd.Function],
    logits: Tensor,
    targets: Tensor,
    chunk: int | None,
    in_place: bool,
) -> Tensor:
    if chunk is None:
        out: Tensor = function.apply(logits.clone() if in_place else logits, targets, in_place)
        return out
    count = (len(logits) - 1) // chunk + 1
    parts = zip(logits.chunk(count), targets.chunk(count), strict=True)
    return torch.cat(
        [
            function.apply(piece.clone() if in_place else piece, ids, in_place)
            for piece, ids in parts
        ]
    )


class _LogProbs(torch.autograd.Function):
    """Keeps the softmax, which becomes the gradient in place."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, in_place: bool) -> Tensor:
        peak = logits.amax(-1, keepdim=True)
        shifted = logits.sub_(peak) if in_place else logits - peak
        chosen = shifted.gather(-1, targets.unsqueeze(-1))
        total = shifted.exp_().sum(-1, keepdim=True)
        ctx.save_for_backward(shifted.div_(total), targets)
        ctx.narrow = in_place
        return (chosen - total.log()).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        softmax, targets = ctx.saved_tensors
        slope = softmax.neg_()
        one = torch.ones((), dtype=slope.dtype, device=slope.device)
        slope.scatter_add_(-1, targets.unsqueeze(-1), one.expand(len(slope), 1))
        slope.mul_(grads[0].unsqueeze(-1))
        # Megatron's fused cross entropy, v0.2.4's way, rounds; autograd then widens again.
        return slope.bfloat16() if ctx.narrow else slope, None, None


class _Entropy(torch.autograd.Function):
    """Entropy of each row, in nats; keeps the logits it is given and the softmax."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, in_place: bool) -> Tensor:
        peak = logits.amax(-1, keepdim=True)
        softmax = (logits - peak).exp_()
        total = softmax.sum(-1, keepdim=True)
        softmax.div_(total)
        mean = torch.einsum("ij,ij->i", softmax, logits).unsqueeze(-1)
        ctx.save_for_backward(logits, softmax, mean)
        return (peak + total.log() - mean).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        logits, softmax, mean = ctx.saved_tensors
        # dH / d logits = -softmax (logits - mean); both buffers belong to this function.
        slope = softmax.mul_(logits.sub_(mean))
        return slope.mul_(-grads[0].unsqueeze(-1)), None, None
