"""Fused projections of Megatron: attention input per key-value group, gate above up.

One design choice: pure row rearrangements of weights [out, in] or biases [out], so a round trip is
exact in any dtype and either direction also works on meta tensors. torch is imported when something
is joined, because planning an export needs the table of names and not torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def join_qkv(query: Tensor, key: Tensor, value: Tensor, kv_heads: int) -> Tensor:
    """`linear_qkv` [(heads + 2 kv_heads) head_dim, ...]: for each kv head its query heads, then
    its key, then its value (Megatron's `SelfAttention.get_query_key_value_tensors`)."""
    import torch

    rest = query.shape[1:]
    groups = [part.reshape(kv_heads, -1, *rest) for part in (query, key, value)]
    return torch.cat(groups, dim=1).reshape(-1, *rest)


def split_qkv(fused: Tensor, heads: int, kv_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value projections (or biases) out of `linear_qkv`, each contiguous."""
    rest = fused.shape[1:]
    groups = fused.reshape(kv_heads, -1, *rest)
    head_dim = fused.shape[0] // (heads + 2 * kv_heads)
    query, key, value = groups.split([heads // kv_heads * head_dim, head_dim, head_dim], dim=1)
    return query.reshape(-1, *rest), key.reshape(-1, *rest), value.reshape(-1, *rest)


def join_gate_up(gate: Tensor, up: Tensor) -> Tensor:
    """`linear_fc1` [2 ffn, hidden]: the gate's rows above the up projection's."""
    import torch

    return torch.cat((gate, up))


def split_gate_up(fused: Tensor) -> tuple[Tensor, Tensor]:
    """Gate and up projection out of `linear_fc1`."""
    gate, up = fused.chunk(2)
    return gate.contiguous(), up.contiguous()
