"""Causal attention of one context-parallel rank, linear in memory, on GPU and CPU.

One design choice: a rank's two zigzag pieces meet the gathered keys block by block with the flash
kernel and are merged by log-sum-exp, so nothing of size length x length exists and key gradients
per query head are as large as one block.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from launch.plan.measure.kernels import gather, scatter

State = tuple[Tensor, ...]
"""The dropout counters that the GPU's backward kernel asks for; without dropout any call's do."""


class RingAttention(torch.autograd.Function):
    """Rank 0 of `ranks`: it holds the first and the last of 2 x ranks pieces of the sequence, so
    its queries reach from the first key to the last."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, ranks: int) -> Tensor:
        """[n, heads, d], keys and values [n, kv_heads, d] of this rank, n even -> [n, heads, d].

        The keys of every other rank are taken to be this rank's.
        """
        keys, values = gather(key, ranks), gather(value, ranks)
        out, sums = torch.empty_like(query), []
        half = len(query) // 2
        for piece, place in _pieces(half, ranks):
            total, lse, ctx.state = _attend(query[piece], keys, values, place)
            out[piece] = total
            sums.append(lse)
        ctx.save_for_backward(query, key, value, out, *sums)
        ctx.ranks = ranks
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        query, key, value, out, *sums = ctx.saved_tensors
        keys, values = gather(key, ctx.ranks), gather(value, ctx.ranks)
        d_query = torch.empty_like(query)
        d_keys, d_values = torch.zeros_like(keys), torch.zeros_like(values)
        half = len(query) // 2
        for (piece, place), lse in zip(_pieces(half, ctx.ranks), sums, strict=True):
            mine = grads[0][piece], query[piece], out[piece], lse
            total = d_query[piece].zero_()
            for block in range(place + 1):
                part = slice(block * half, (block + 1) * half)
                dq, dk, dv = _flash_backward(
                    *mine, keys[part], values[part], block == place, ctx.state
                )
                total += dq
                d_keys[part] += dk
                d_values[part] += dv
        return d_query, scatter(d_keys, ctx.ranks), scatter(d_values, ctx.ranks), None


def _pieces(half: int, ranks: int) -> tuple[tuple[slice, int], tuple[slice, int]]:
    """Rows of rank 0's two pieces, each with its place among the 2 x ranks pieces."""
    return (slice(0, half), 0), (slice(half, 2 * half), 2 * ranks - 1)


def _attend(
    query: Tensor, keys: Tensor, values: Tensor, place: int
) -> tuple[Tensor, Tensor, State]:
    """One piece of queries against all keys up to its own end; fp32 sums over the blocks."""
    size = len(query)
    near = slice(place * size, (place + 1) * size)
    out, lse, state = _flash(query, keys[near], values[near], True)
    total = out.float()
    for block in range(place):
        far = slice(block * size, (block + 1) * size)
        out, far_lse, state = _flash(query, keys[far], values[far], False)
        weight = torch.sigmoid(far_lse - lse).flatten(0, 1).t().unsqueeze(-1)
        total.lerp_(out.float(), weight)
        lse = torch.logaddexp(lse, far_lse)
    return total, lse, state


def _flash(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> tuple[Tensor, Tensor, State]:
    """[n, heads, d] -> out of the same shape and log-sum-exp [kv_heads, heads / kv_heads, n]."""
    inputs = _grouped(query, key, value)
    if query.is_cpu:
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*inputs, 0.0, causal)
        return _rows(out), lse, ()
    result = torch.ops.aten._scaled_dot_product_flash_attention(*inputs, 0.0, causal)
    return _rows(result[0]), result[1], tuple(result[6:8])


def _flash_backward(
    grad: Tensor,
    query: Tensor,
    out: Tensor,
    lse: Tensor,
    key: Tensor,
    value: Tensor,
    causal: bool,
    state: State,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value rows, given the merged output and log-sum-exp."""
    q, k, v = _grouped(query, key, value)
    g, o = (_heads(t, key.shape[1]) for t in (grad, out))
    if query.is_cpu:
        op = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        dq, dk, dv = op(g, q, k, v, o, lse, 0.0, causal)
    else:
        op = torch.ops.aten._scaled_dot_product_flash_attention_backward
        sizes = (None, None, len(query), len(key))
        dq, dk, dv = op(g, q, k, v, o, lse, *sizes, 0.0, causal, *state)
    return _rows(dq), dk.sum(1).transpose(0, 1), dv.sum(1).transpose(0, 1)


def _heads(x: Tensor, kv_heads: int) -> Tensor:
    """View [n, heads, d] as [kv_heads, heads / kv_heads, n, d]."""
    grouped: Tensor = x.unflatten(1, (kv_heads, -1))
    return grouped.permute(1, 2, 0, 3)


def _rows(x: Tensor) -> Tensor:
    """The inverse of `_heads`."""
    return x.permute(2, 0, 1, 3).flatten(1, 2)


def _grouped(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """As the kernels take them: keys and values seen by every query head of theirs, uncopied."""
    kv_heads = key.shape[1]
    q = _heads(query, kv_heads)
    k, v = (t.transpose(0, 1).unsqueeze(1).expand(-1, q.shape[1], -1, -1) for t in (key, value))
    return q, k, v
