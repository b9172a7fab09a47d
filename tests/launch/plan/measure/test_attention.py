"""The attention of one context-parallel rank against the formula."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from launch.plan.measure.attention import RingAttention


def reference(query: Tensor, key: Tensor, value: Tensor, ranks: int) -> Tensor:
    """Softmax attention of rank 0's first and last piece over the keys of all ranks."""
    keys, values = key.repeat(ranks, 1, 1), value.repeat(ranks, 1, 1)
    group = query.shape[1] // key.shape[1]
    keys, values = (t.repeat_interleave(group, 1) for t in (keys, values))
    half, total = len(query) // 2, len(keys)
    places = torch.cat((torch.arange(half), torch.arange(total - half, total)))
    scores = torch.einsum("qhd,khd->hqk", query, keys) / math.sqrt(query.shape[-1])
    later = torch.arange(total).unsqueeze(0) > places.unsqueeze(1)
    weights = scores.masked_fill(later, -math.inf).softmax(-1)
    return torch.einsum("hqk,khd->qhd", weights, values)


def inputs(device: str = "cpu") -> list[Tensor]:
    torch.manual_seed(0)
    sizes = ((32, 4, 16), (32, 2, 16), (32, 2, 16))
    return [torch.randn(size, device=device).requires_grad_() for size in sizes]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_it_is_causal_attention_with_its_gradients(ranks: int) -> None:
    ours, theirs = inputs(), inputs()
    out, wanted = RingAttention.apply(*ours, ranks), reference(*theirs, ranks)
    torch.testing.assert_close(out, wanted, rtol=1e-4, atol=1e-5)
    slope = torch.randn_like(out)
    out.backward(slope)
    wanted.backward(slope)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-4, atol=1e-5)


def test_the_gpu_kernels_take_the_same_arguments() -> None:
    """On the meta device torch checks the calls that a GPU would get, and computes nothing."""
    query, key, value = inputs("meta")
    out = RingAttention.apply(query, key, value, 2)
    assert out.shape == query.shape
    out.backward(torch.empty_like(out))
    assert key.grad is not None
    assert key.grad.shape == key.shape
