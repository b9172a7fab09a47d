"""Tree attention against softmax with an explicit mask, values and gradients."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from slime_ext.embedded.attention import TreeAttention, TreeLayout

HEADS, KV, DIM = 4, 2, 8


def masked_attention(query: Tensor, key: Tensor, value: Tensor, visible: Tensor) -> Tensor:
    """Reference over [s, b, h, d] with `visible` [b, s, s]."""
    key, value = (t.repeat_interleave(HEADS // KV, dim=2) for t in (key, value))
    scores = torch.einsum("qbhd,kbhd->bhqk", query, key) / math.sqrt(DIM)
    weights = scores.masked_fill(~visible[:, None], float("-inf")).softmax(-1)
    return torch.einsum("bhqk,kbhd->qbhd", weights, value).flatten(2)


def visible_pairs(layout: TreeLayout | None, lengths: list[int], total: int) -> Tensor:
    """Which position sees which, straight from the definition of a tree."""
    causal = torch.ones(total, total, dtype=torch.bool).tril()
    if layout is None:
        return causal.expand(len(lengths), total, total)
    branch = (torch.arange(total) - layout.prompt) % layout.branches
    branch[: layout.prompt] = -1
    rows = []
    for length in lengths:
        shared = torch.arange(total) < length
        padding = (torch.arange(total) < layout.prompt) & ~shared
        same = branch[:, None] == branch[None, :]
        sees = causal & (same | (shared[None, :] & (branch[:, None] >= 0)))
        sees &= ~padding[None, :] | torch.eye(total, dtype=torch.bool)
        rows.append(sees)
    return torch.stack(rows)


@pytest.mark.parametrize("lengths", [[9, 9], [9, 4]])
@pytest.mark.parametrize("tree", [True, False])
def test_equals_masked_softmax(lengths: list[int], tree: bool) -> None:
    torch.manual_seed(0)
    prompt, branches, width = 9, 3, 5
    total = prompt + branches * width if tree else 12
    layout = None
    if tree:
        bias = torch.zeros(2, 1, 1, prompt)
        for row, length in enumerate(lengths):
            bias[row, ..., length:] = float("-inf")
        layout = TreeLayout(prompt, branches, width, bias if min(lengths) < prompt else None)
    tensors = [torch.randn(total, 2, heads, DIM, requires_grad=True) for heads in (HEADS, KV, KV)]
    real = torch.ones(2, total, dtype=torch.bool)
    if tree:
        for row, length in enumerate(lengths):
            real[row, length:prompt] = False
    probe = torch.randn(total, 2, HEADS * DIM) * real.t()[..., None]

    attention = TreeAttention(SimpleNamespace(kv_channels=DIM), layer_number=1)
    ours = attention(*tensors, layout)
    gradients = torch.autograd.grad((ours * probe).sum(), tensors)
    reference = masked_attention(*tensors, visible_pairs(layout, lengths, total))
    expected = torch.autograd.grad((reference * probe).sum(), tensors)
    torch.testing.assert_close(ours * probe, reference * probe, rtol=1e-5, atol=1e-5)
    for got, want in zip(gradients, expected, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_what_it_cannot_do_is_refused() -> None:
    attention = TreeAttention(SimpleNamespace(kv_channels=DIM), layer_number=1)
    tensor = torch.zeros(2, 1, KV, DIM)
    with pytest.raises(ValueError, match="packed_seq_params"):
        attention(tensor, tensor, tensor, None, packed_seq_params=object())
