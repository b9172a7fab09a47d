"""Stand-ins for fused kernels and collectives, with the memory of the real ones on one GPU.

One design choice: a fused kernel keeps its inputs and nothing else, so `rows` runs any row-wise
function block by block and computes it again in the backward pass; a collective is a copy of the
size that the real one would fill, since the other ranks are not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 256
"""Rows that a row-wise function sees at once; its temporaries are of this size."""


def rows(function: Callable[..., Tensor], by_row: list[Tensor], shared: list[Tensor]) -> Tensor:
    """`function(*by_row, *shared)`, where output row i depends on row i of each `by_row` alone.

    All of `by_row` have the same number N of rows, and so has the output. Saves its arguments, no
    intermediate result.
    """
    out: Tensor = _Rows.apply(function, len(by_row), *by_row, *shared)
    return out


class _Rows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], count: int, *tensors: Tensor) -> Tensor:
        length = len(tensors[0])
        out = None
        for part in _blocks(length):
            piece = function(*(t[part] for t in tensors[:count]), *tensors[count:])
            if out is None:
                out = piece.new_empty((length, *piece.shape[1:]))
            out[part] = piece
        assert out is not None
        ctx.save_for_backward(*tensors)
        ctx.function, ctx.count = function, count
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        tensors, count, needed = ctx.saved_tensors, ctx.count, ctx.needs_input_grad[2:]
        results = [
            None if not need else torch.empty_like(t) if i < count else torch.zeros_like(t)
            for i, (t, need) in enumerate(zip(tensors, needed, strict=True))
        ]
        wanted = [i for i, need in enumerate(needed) if need]
        for part in _blocks(len(tensors[0])):
            with torch.enable_grad():
                inputs = [(t[part] if i < count else t).detach() for i, t in enumerate(tensors)]
                for i in wanted:
                    inputs[i].requires_grad_()
                piece = ctx.function(*inputs)
            slopes = torch.autograd.grad(piece, [inputs[i] for i in wanted], grads[0][part])
            for i, slope in zip(wanted, slopes, strict=True):
                target = results[i]
                assert target is not None
                if i < count:
                    target[part] = slope
                else:
                    target += slope
        return (None, None, *results)


class GatheredLinear(torch.autograd.Function):
    """Sequence-parallel input -> linear layer cut by columns; keeps the cut input and gathers it
    again in the backward pass, as Megatron's column-parallel layer does."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, ranks: int) -> Tensor:
        """`x` [n, H], `weight` [out, H] -> [n ranks, out]."""
        ctx.save_for_backward(x, weight)
        ctx.ranks = ranks
        return gather(x, ranks) @ weight.t()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        x, weight = ctx.saved_tensors
        d_weight = grads[0].t() @ gather(x, ctx.ranks)
        return scatter(grads[0] @ weight, ctx.ranks), d_weight, None


class Lookup(torch.autograd.Function):
    """Rows of an embedding; its gradient is dense, as that of Megatron's own embedding is."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, ids: Tensor) -> Tensor:
        """`weight` [vocab, H], `ids` [n] -> [n, H]."""
        ctx.save_for_backward(ids)
        ctx.like, ctx.size = weight[:0], weight.shape
        return weight[ids]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (ids,) = ctx.saved_tensors
        # torch's own backward pass keeps a float32 copy besides, on CPU. Filled, because pages that
        # nobody wrote are not in memory yet.
        d_weight = ctx.like.new_empty(ctx.size).fill_(0.0)
        return d_weight.index_add_(0, ids, grads[0]), None


class Scatter(torch.autograd.Function):
    """Reduce-scatter of a row-parallel layer's output: [n ranks, H] -> [n, H]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: int) -> Tensor:
        ctx.ranks = ranks
        return scatter(x, ranks)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return gather(grads[0], ctx.ranks), None


class Exchange(torch.autograd.Function):
    """All-to-all of a balanced mixture of experts, as much arriving as was sent, and an all-gather
    over the `ranks` that an expert is cut into: [n, H] -> [n ranks, H]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: int) -> Tensor:
        ctx.ranks = ranks
        return x.repeat(ranks, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return grads[0].unflatten(0, (ctx.ranks, -1)).sum(0), None


def gather(x: Tensor, ranks: int) -> Tensor:
    """What an all-gather over `ranks` fills, every rank having sent `x`; `x` itself for one."""
    return x if ranks == 1 else x.repeat(ranks, *([1] * (x.dim() - 1)))


def scatter(x: Tensor, ranks: int) -> Tensor:
    """The adjoint of `gather`."""
    return x if ranks == 1 else x.unflatten(0, (ranks, -1)).sum(0)


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """RMSNorm over the last dimension."""
    return rows(lambda x, w: F.rms_norm(x, x.shape[-1:], w, eps), [x], [weight])


def swiglu(x: Tensor) -> Tensor:
    """[..., 2 F] gate beside up -> [..., F]."""
    return rows(_swiglu, [x], [])


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of `x` [n, heads, d] with `cos` and `sin` [n, d]."""
    return rows(_rotate, [x, cos, sin], [])


def weighted_sum(x: Tensor, weights: Tensor) -> Tensor:
    """[n, k, H] and [n, k] -> [n, H]."""
    return rows(lambda x, w: (x * w.unsqueeze(-1)).sum(1), [x, weights], [])


def _swiglu(x: Tensor) -> Tensor:
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return x * cos.unsqueeze(1) + torch.cat((-right, left), -1) * sin.unsqueeze(1)


def _blocks(length: int) -> list[slice]:
    return [slice(i, min(i + BLOCK, length)) for i in range(0, length, BLOCK)]
