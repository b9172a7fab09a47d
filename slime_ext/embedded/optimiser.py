"""AdamW with Megatron's rules: no decay on norms, linear warm-up, then a constant rate.

One design choice: the rate is a function of the number of updates done, not scheduler state, so a
resumed run cannot disagree with its checkpoint.
"""

from __future__ import annotations

import torch

from slime_ext.recipe.schema import OptimiserSection


def build_optimiser(model: torch.nn.Module, settings: OptimiserSection) -> torch.optim.AdamW:
    """Fused AdamW over `model`; vectors (norm weights) are not decayed, as in Megatron."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in parameters if p.dim() <= 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(
        groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True
    )
    # torch makes the moments at the first step; a checkpoint needs them before, to load into.
    for parameter in parameters:
        optimiser.state[parameter] = {
            "step": torch.zeros(()),
            "exp_avg": torch.zeros_like(parameter),
            "exp_avg_sq": torch.zeros_like(parameter),
        }
    return optimiser


def learning_rate(updates_done: int, settings: OptimiserSection) -> float:
    """Rate of the next update; the `warmup_steps`-th update is the first at the full rate."""
    if settings.warmup_steps == 0:
        return settings.lr
    return settings.lr * min(1.0, (updates_done + 1) / settings.warmup_steps)


def set_learning_rate(optimiser: torch.optim.Optimizer, rate: float) -> None:
    """Give every parameter group this rate."""
    for group in optimiser.param_groups:
        group["lr"] = rate
