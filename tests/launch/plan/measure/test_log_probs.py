"""Log-probs over the vocabulary share, both hosts."""

from __future__ import annotations

import pytest
import torch

from launch.plan.measure.log_probs import policy_loss
from tests.launch.plan.measure.shares import small

VOCAB, TOKENS = 40, 16


def plain(logits: torch.Tensor, targets: torch.Tensor, rows: list[int]) -> torch.Tensor:
    log_probs = logits.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return -log_probs[rows].mean()


@pytest.mark.parametrize("chunk", [None, 5])
@pytest.mark.parametrize(
    ("ranks", "rows", "looked_at"),
    [
        (1, None, list(range(16))),
        (1, 6, list(range(10, 16))),
        (2, 6, list(range(10, 16))),
        (2, 11, [5, 6, 7, *range(8, 16)]),
    ],
)
def test_loss_and_gradient_equal_log_softmax(
    chunk: int | None, ranks: int, rows: int | None, looked_at: list[int]
) -> None:
    torch.manual_seed(1)
    logits = torch.randn(TOKENS, VOCAB, requires_grad=True)
    targets = torch.randint(0, VOCAB, (TOKENS,))
    share = small(cp=ranks, response_rows=rows, temperature=0.5)
    loss = policy_loss(logits, targets, share, chunk)
    (slope,) = torch.autograd.grad(loss, logits)
    wanted = plain(logits / 0.5, targets, looked_at)
    (wanted_slope,) = torch.autograd.grad(wanted, logits)
    torch.testing.assert_close(loss, wanted)
    # v0.2.4 rounds the gradient to bf16.
    tolerance = {} if rows is None else {"rtol": 1e-2, "atol": 1e-4}
    torch.testing.assert_close(slope, wanted_slope, **tolerance)


def test_without_gradients_the_caller_keeps_its_logits() -> None:
    logits = torch.randn(TOKENS, VOCAB)
    before = logits.clone()
    targets = torch.zeros(TOKENS, dtype=torch.long)
    with torch.no_grad():
        policy_loss(logits, targets, small(cp=1, response_rows=8), None)
        policy_loss(logits, targets, small(), 4)
    assert torch.equal(logits, before)
