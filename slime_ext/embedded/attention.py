"""Core attention of the trainer: causal, or over prompts that branch into several responses.

One design choice: the attention pattern is never a mask. A tree is two calls of the CPU flash
kernel for the branches (all of the prompt; causal inside the branch), merged by log-sum-exp, and
one causal call for the prompt, so memory is linear in length and nothing masked is computed (at
600 prompt tokens and 8 branches of 28, half the time of one masked call).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from megatron.core.transformer.transformer_config import TransformerConfig
from torch import Tensor

_flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_flash_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """Where things are in a row: `prompt` positions, then `width` x `branches`, branch fastest.

    `prompt_bias` [rows, 1, 1, prompt] is 0 for real prompt positions and -inf for padding; None
    where no row is padded.
    """

    prompt: int
    branches: int
    width: int
    prompt_bias: Tensor | None


class TreeAttention(torch.nn.Module):
    """Megatron core attention; `attention_mask` is a TreeLayout, or None for plain causal rows."""

    def __init__(
        self,
        config: TransformerConfig,
        layer_number: int,
        softmax_scale: float | None = None,
        **_: Any,
    ) -> None:
        super().__init__()
        self.layer_number = layer_number
        self.scale = softmax_scale or 1.0 / math.sqrt(config.kv_channels)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: TreeLayout | None,
        attn_mask_type: Any = None,
        attention_bias: Tensor | None = None,
        packed_seq_params: Any = None,
    ) -> Tensor:
        """[s, b, heads, d] queries, [s, b, kv_heads, d] keys and values -> [s, b, heads d]."""
        if attention_bias is not None or packed_seq_params is not None:
            raise ValueError("TreeAttention takes neither attention_bias nor packed_seq_params")
        context: Tensor = _TreeAttention.apply(query, key, value, attention_mask, self.scale)
        return context.flatten(2)


class _TreeAttention(torch.autograd.Function):
    """One graph node for the whole layer, so that the backward pass reuses the merged output."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        layout: TreeLayout | None,
        scale: float,
    ) -> Tensor:
        query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
        prompt = query.shape[0] if layout is None else layout.prompt
        out = torch.empty_like(query)
        q, k, v, o = (_rows(t[:prompt], key.shape[2]) for t in (query, key, value, out))
        part, prompt_lse = _flash(q, *_shared(q, k, v), 0.0, True, scale=scale)
        o.copy_(part)
        branch_lse = None
        if layout is not None:
            branch_lse = _branches_forward(query, key, value, out, layout, scale)
        ctx.save_for_backward(query, key, value, out, prompt_lse, branch_lse)
        ctx.layout, ctx.scale = layout, scale
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        query, key, value, out, prompt_lse, branch_lse = ctx.saved_tensors
        layout, scale, grad = ctx.layout, ctx.scale, grads[0].contiguous()
        prompt = query.shape[0] if layout is None else layout.prompt
        d_query, d_key, d_value = (torch.empty_like(t) for t in (query, key, value))
        inputs = (grad, query, key, value, out, d_query, d_key, d_value)
        g, q, k, v, o, dq, dk, dv = (_rows(t[:prompt], key.shape[2]) for t in inputs)
        parts = _flash_backward(g, q, *_shared(q, k, v), o, prompt_lse, 0.0, True, scale=scale)
        dq.copy_(parts[0])
        dk.copy_(parts[1].sum(1, keepdim=True))
        dv.copy_(parts[2].sum(1, keepdim=True))
        if layout is not None:
            _branches_backward(inputs, branch_lse, layout, scale)
        return d_query, d_key, d_value, None, None


def _branches_forward(
    query: Tensor, key: Tensor, value: Tensor, out: Tensor, layout: TreeLayout, scale: float
) -> Tensor:
    """Fill `out` behind the prompt; returns the merged log-sum-exp [R, G, b kv, heads / kv]."""
    kv, prompt = key.shape[2], layout.prompt
    q = _rows(query[prompt:], kv)
    k, v = _shared(q, _rows(key[:prompt], kv), _rows(value[:prompt], kv))
    far, far_lse = _flash(q, k, v, 0.0, False, attn_mask=_bias(layout, kv), scale=scale)
    q, k, v = (_branch_rows(t[prompt:], kv, layout) for t in (query, key, value))
    near, near_lse = _flash(q, *_shared(q, k, v), 0.0, True, scale=scale)

    far, near = _far_to_grid(far, layout), _near_to_grid(near, layout)
    far_lse, near_lse = _far_to_grid(far_lse, layout), _near_to_grid(near_lse, layout)
    near_weight = torch.sigmoid(near_lse - far_lse).unsqueeze(-1)
    out[prompt:].view(near.shape).copy_(torch.lerp(far, near, near_weight))
    return torch.logaddexp(far_lse, near_lse)


def _branches_backward(
    inputs: tuple[Tensor, ...], lse: Tensor, layout: TreeLayout, scale: float
) -> None:
    """Fill the branches' gradients and add the branches' share to the prompt's keys and values."""
    kv, prompt = inputs[2].shape[2], layout.prompt
    d_key, d_value = inputs[6:]
    g, q, o, dq = (_rows(inputs[i][prompt:], kv) for i in (0, 1, 4, 5))
    k, v = _shared(q, _rows(inputs[2][:prompt], kv), _rows(inputs[3][:prompt], kv))
    far_lse = lse.permute(2, 3, 0, 1).flatten(2)
    far = _flash_backward(
        g, q, k, v, o, far_lse, 0.0, False, attn_mask=_bias(layout, kv), scale=scale
    )
    dq.copy_(far[0])
    _rows(d_key[:prompt], kv).add_(far[1].sum(1, keepdim=True))
    _rows(d_value[:prompt], kv).add_(far[2].sum(1, keepdim=True))

    views = (_branch_rows(t[prompt:], kv, layout) for t in inputs)
    g, q, k, v, o, dq, dk, dv = views
    near_lse = lse.permute(1, 2, 3, 0).flatten(0, 1)
    near = _flash_backward(g, q, *_shared(q, k, v), o, near_lse, 0.0, True, scale=scale)
    dq.add_(near[0])
    dk.copy_(near[1].sum(1, keepdim=True))
    dv.copy_(near[2].sum(1, keepdim=True))


def _rows(tensor: Tensor, kv: int) -> Tensor:
    """View [s, b, h, d] as [b kv, h / kv, s, d]: the query heads of one kv head share a row."""
    length, batch, heads, dim = tensor.shape
    return tensor.view(length, batch * kv, heads // kv, dim).permute(1, 2, 0, 3)


def _branch_rows(tensor: Tensor, kv: int, layout: TreeLayout) -> Tensor:
    """View [R G, b, h, d] as [G b kv, h / kv, R, d]; branch fastest is what makes it a view."""
    _, batch, heads, dim = tensor.shape
    rows = layout.branches * batch * kv
    return tensor.view(layout.width, rows, heads // kv, dim).permute(1, 2, 0, 3)


def _shared(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values repeated for every query head of their row, without a copy."""
    heads = query.shape[1]
    return key.expand(-1, heads, -1, -1), value.expand(-1, heads, -1, -1)


def _far_to_grid(tensor: Tensor, layout: TreeLayout) -> Tensor:
    """[b kv, rep, R G, ...] -> [R, G, b kv, rep, ...]."""
    grid = tensor.unflatten(2, (layout.width, layout.branches))
    return grid.permute(2, 3, 0, 1, *range(4, grid.dim()))


def _near_to_grid(tensor: Tensor, layout: TreeLayout) -> Tensor:
    """[G b kv, rep, R, ...] -> [R, G, b kv, rep, ...]."""
    grid = tensor.unflatten(0, (layout.branches, -1))
    return grid.permute(3, 0, 1, 2, *range(4, grid.dim()))


def _bias(layout: TreeLayout, kv: int) -> Tensor | None:
    return None if layout.prompt_bias is None else layout.prompt_bias.repeat_interleave(kv, dim=0)
