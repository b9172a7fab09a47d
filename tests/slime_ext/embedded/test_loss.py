"""The GRPO loss against a loop over tokens, with gradients by autograd."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from slime_ext.embedded.loss import TokenInputs, grpo_loss, token_weights
from slime_ext.recipe.schema import LossSection

MASK = [1, 1, 0, 1, 1, 1, 1, 0, 0]
ROLLOUTS = [4, 4, 4, 4, 9, 9, 9, 2, 2]
LENGTHS = {4: 3, 9: 3, 2: 0}


def naive_weight(number: int, normalise: str) -> float:
    if not MASK[number]:
        return 0.0
    return {
        "token": 1 / sum(MASK),
        "rollout": 1 / LENGTHS[ROLLOUTS[number]] / 3,
        "constant": 1 / (3 * 50),
    }[normalise]


@pytest.mark.parametrize("normalise", ["token", "rollout", "constant"])
def test_token_weights(normalise: str) -> None:
    weights = token_weights(torch.tensor(MASK), torch.tensor(ROLLOUTS), normalise, 50)
    expected = [naive_weight(number, normalise) for number in range(len(MASK))]
    torch.testing.assert_close(weights, torch.tensor(expected))


def naive_loss(
    log_probs: Tensor,
    old: list[float],
    rollout: list[float],
    advantages: list[float],
    reference: list[float],
    weights: list[float],
    settings: LossSection,
) -> Tensor:
    """The objective, one token at a time."""
    total = torch.zeros(())
    for n in range(len(old)):
        ratio = (log_probs[n] - old[n]).exp()
        low, high = 1 - settings.clip_low, 1 + settings.clip_high
        objective = torch.minimum(ratio * advantages[n], ratio.clamp(low, high) * advantages[n])
        if settings.clip_c is not None and advantages[n] < 0:
            objective = torch.maximum(objective, torch.tensor(settings.clip_c * advantages[n]))
        if settings.icepop is not None:
            mismatch = math.exp(old[n] - rollout[n])
            inside = settings.icepop[0] <= mismatch <= settings.icepop[1]
            objective = objective * (mismatch if inside else 0.0)
        gap = reference[n] - log_probs[n]
        total = total - objective * weights[n]
        total = total + settings.kl_coef * (gap.exp() - gap - 1) * weights[n]
    return total


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"clip_c": 1.5},
        {"icepop": (0.7, 1.4)},
        {"kl_coef": 0.3},
        {"clip_low": 0.1, "clip_high": 0.5, "clip_c": 3.0, "icepop": (0.5, 2.0), "kl_coef": 0.1},
    ],
)
def test_equals_a_loop_over_tokens(options: dict[str, Any]) -> None:
    generator = torch.Generator().manual_seed(3)
    n = 200
    old, rollout, reference, current = (
        -2 + 0.6 * torch.randn(n, generator=generator) for _ in range(4)
    )
    advantages = torch.randn(n, generator=generator)
    weights = torch.rand(n, generator=generator) / n
    settings = LossSection(**options)
    current.requires_grad_(True)
    inputs = TokenInputs(
        old, rollout, advantages, weights, reference if settings.kl_coef > 0 else None
    )
    loss, metrics = grpo_loss(current, torch.zeros(n), inputs, settings)
    lists = [t.tolist() for t in (old, rollout, advantages, reference, weights)]
    expected = naive_loss(current, *lists, settings)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-6)
    ours, theirs = (torch.autograd.grad(value, current)[0] for value in (loss, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(metrics["loss"], loss.detach())


def test_metrics_by_hand() -> None:
    current = torch.tensor([-1.0, -1.0, -1.0, -1.0])
    old = torch.tensor([-1.0, -2.0, -2.0, -1.0])
    rollout = torch.tensor([-1.0, -2.5, -2.0, -3.0])
    # Ratio e exceeds 1.28: clipped for the positive advantage only.
    inputs = TokenInputs(old, rollout, torch.tensor([1.0, 1.0, -1.0, 1.0]), torch.full((4,), 0.25))
    settings = LossSection(icepop=(0.5, 2.0))
    _, sums = grpo_loss(current, torch.tensor([1.0, 2.0, 3.0, 4.0]), inputs, settings)
    got = {name: float(value) for name, value in sums.items()}
    assert got["pg_clipfrac"] == 0.25
    assert got["ppo_kl"] == pytest.approx(-0.5)
    assert got["entropy"] == 2.5
    assert got["train_rollout_logprob_abs_diff"] == pytest.approx((0.5 + 2.0) / 4)
    assert got["icepop_masked"] == 0.25
    assert "kl_loss" not in got


def test_unknown_normalisation_is_refused() -> None:
    with pytest.raises(ValueError, match="mean"):
        token_weights(torch.ones(1), torch.zeros(1), "mean", 1)
