"""Stand-ins of kernels and collectives: right values, right gradients, inputs kept only."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from launch.plan.measure import kernels
from launch.plan.measure.kernels import Exchange, GatheredLinear, Lookup, Scatter


def doubles(*size: int) -> torch.Tensor:
    return torch.randn(size, dtype=torch.float64).requires_grad_()


def test_row_wise_functions_equal_plain_torch_over_many_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernels, "BLOCK", 3)
    x, w = doubles(8, 2, 6), doubles(6)
    cos, sin = (torch.randn(8, 6, dtype=torch.float64) for _ in range(2))
    assert torch.autograd.gradcheck(lambda a, b: kernels.rms_norm(a, b, 1e-6), (x, w))
    assert torch.autograd.gradcheck(kernels.swiglu, (x,))
    assert torch.autograd.gradcheck(lambda a: kernels.rotate(a, cos, sin), (x,))
    assert torch.autograd.gradcheck(kernels.weighted_sum, (x, doubles(8, 2)))
    torch.testing.assert_close(kernels.rms_norm(x, w, 1e-6), F.rms_norm(x, (6,), w, 1e-6))
    gate, up = x.chunk(2, -1)
    torch.testing.assert_close(kernels.swiglu(x), F.silu(gate) * up)


def test_a_row_wise_function_keeps_its_inputs_only() -> None:
    kept = []
    x = torch.randn(8, 4, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        kernels.swiglu(x)
    assert [t.data_ptr() for t in kept] == [x.data_ptr()]


def test_collectives_are_adjoint_and_sized_as_the_real_ones() -> None:
    x, weight, table = doubles(3, 4), doubles(5, 4), doubles(7, 4)
    assert GatheredLinear.apply(x, weight, 2).shape == (6, 5)
    assert torch.autograd.gradcheck(lambda a, b: GatheredLinear.apply(a, b, 2), (x, weight))
    assert torch.autograd.gradcheck(lambda a: Scatter.apply(a, 3), (x,))
    assert torch.autograd.gradcheck(lambda a: Exchange.apply(a, 2), (x,))
    ids = torch.tensor([1, 1, 6])
    assert torch.autograd.gradcheck(lambda a: Lookup.apply(a, ids), (table,))
