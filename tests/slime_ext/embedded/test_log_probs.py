"""Chunked log-probs: values, entropy and gradients against the plain formula."""

from __future__ import annotations

import pytest
import torch

from slime_ext.embedded.log_probs import chunked_log_probs


@pytest.mark.parametrize("chunk", [1, 4, 7, 100])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_equals_log_softmax(chunk: int, temperature: float) -> None:
    torch.manual_seed(0)
    hidden = torch.randn(13, 6, requires_grad=True)
    weight = torch.randn(29, 6, requires_grad=True)
    targets = torch.randint(29, (13,))
    probe = torch.randn(13)

    log_probs, entropy = chunked_log_probs(hidden, weight, targets, temperature, chunk)
    full = (hidden @ weight.t() / temperature).log_softmax(-1)
    expected = full.gather(-1, targets[:, None])[:, 0]
    torch.testing.assert_close(log_probs, expected)
    torch.testing.assert_close(entropy, -(full.exp() * full).sum(-1))
    assert not entropy.requires_grad
    ours = torch.autograd.grad((log_probs * probe).sum(), (hidden, weight))
    theirs = torch.autograd.grad((expected * probe).sum(), (hidden, weight))
    for got, want in zip(ours, theirs, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)


def test_gradcheck() -> None:
    torch.manual_seed(0)
    hidden = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(8, (5,))

    def log_probs(hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return chunked_log_probs(hidden, weight, targets, 0.7, 2)[0]

    assert torch.autograd.gradcheck(log_probs, (hidden, weight))


def test_large_logits_stay_finite() -> None:
    hidden = torch.full((2, 1), 1000.0, requires_grad=True)
    weight = torch.tensor([[1.0], [-1.0]])
    log_probs, entropy = chunked_log_probs(hidden, weight, torch.tensor([0, 1]), 1.0, 2)
    log_probs.sum().backward()
    assert log_probs.tolist() == [0.0, -2000.0]
    assert entropy.tolist() == [0.0, 0.0]
    assert bool(torch.isfinite(hidden.grad).all())


def test_settings_out_of_range_are_refused() -> None:
    tensor = torch.zeros(1, 1)
    with pytest.raises(ValueError, match="chunk = 0"):
        chunked_log_probs(tensor, tensor, torch.zeros(1, dtype=torch.long), 1.0, 0)
