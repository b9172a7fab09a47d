"""The GRPO objective per token, and the weights that turn tokens into one mean.

One design choice: the normalisation is a weight per token, computed once for a whole update; each
micro-batch then only sums, so the loss does not depend on how the update is cut.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from slime_ext.recipe.schema import LossSection


@dataclass(frozen=True, slots=True)
class TokenInputs:
    """What the loss needs of N response tokens, each [N]; `reference_log_probs` only with KL."""

    old_log_probs: Tensor
    rollout_log_probs: Tensor
    advantages: Tensor
    weights: Tensor
    reference_log_probs: Tensor | None = None


def token_weights(
    loss_mask: Tensor, rollout_ids: Tensor, normalise: str, constant_length: int
) -> Tensor:
    """Weights [N] with which the tokens of one update are summed; 0 where `loss_mask` [N] is 0.

    `token`: mean over all unmasked tokens (DAPO). `rollout`: mean over rollouts of their token
    means; a rollout without unmasked tokens still counts, as in slime's global batch size.
    `constant`: sum over rollouts x `constant_length` (Dr.GRPO, with the response limit as length).
    """
    mask = loss_mask.to(torch.float32)
    _, rollout = rollout_ids.unique(return_inverse=True)
    rollouts = int(rollout.max()) + 1 if len(rollout) else 1
    if normalise == "token":
        return mask / mask.sum().clamp_min(1.0)
    if normalise == "rollout":
        lengths = torch.zeros(rollouts).index_add_(0, rollout, mask).clamp_min(1.0)
        return mask / lengths[rollout] / rollouts
    if normalise == "constant":
        return mask / (rollouts * constant_length)
    raise ValueError(f"loss.normalise = {normalise!r}; write token, rollout or constant")


def grpo_loss(
    log_probs: Tensor, entropy: Tensor, inputs: TokenInputs, settings: LossSection
) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss of some tokens of an update (a scalar to add up) and weighted metric sums, detached.

    Clipped surrogate with clip-higher (DAPO eq. 8), dual clip for negative advantages (`clip_c`),
    IcePop weights (trainer / rollout ratio inside [lo, hi], 0 outside, no gradient), and
    low-variance KL to the reference (k3, limited to 10 as in slime).
    """
    weights = inputs.weights
    log_ratio = log_probs - inputs.old_log_probs
    surrogate, clipped = _clipped_surrogate(log_ratio.exp(), inputs.advantages, settings)
    sums = {
        "pg_clipfrac": (clipped * weights).sum(),
        "ppo_kl": (-log_ratio * weights).sum(),
        "entropy": (entropy * weights).sum(),
    }
    mismatch = inputs.old_log_probs - inputs.rollout_log_probs
    sums["train_rollout_logprob_abs_diff"] = (mismatch.abs() * weights).sum()
    if settings.icepop is not None:
        low, high = settings.icepop
        ratio = mismatch.exp()
        inside = (ratio >= low) & (ratio <= high)
        surrogate = surrogate * torch.where(inside, ratio, 0.0)
        sums["icepop_masked"] = (~inside * weights).sum()
    loss = (surrogate * weights).sum()
    sums["pg_loss"] = loss
    if inputs.reference_log_probs is not None:
        sums["kl_loss"] = (low_variance_kl(log_probs, inputs.reference_log_probs) * weights).sum()
        loss = loss + settings.kl_coef * sums["kl_loss"]
    sums["loss"] = loss
    return loss, {name: value.detach() for name, value in sums.items()}


def low_variance_kl(log_probs: Tensor, reference_log_probs: Tensor) -> Tensor:
    """Schulman's k3 estimate of KL(policy || reference) per token, limited to 10."""
    log_ratio = reference_log_probs - log_probs
    return (log_ratio.exp() - 1 - log_ratio).clamp(max=10.0)


def _clipped_surrogate(
    ratio: Tensor, advantages: Tensor, settings: LossSection
) -> tuple[Tensor, Tensor]:
    plain = -ratio * advantages
    limited = -ratio.clamp(1 - settings.clip_low, 1 + settings.clip_high) * advantages
    surrogate = torch.maximum(plain, limited)
    if settings.clip_c is not None:
        dual = torch.minimum(-settings.clip_c * advantages, surrogate)
        surrogate = torch.where(advantages < 0, dual, surrogate)
    return surrogate, limited > plain
