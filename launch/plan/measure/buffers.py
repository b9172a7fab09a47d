"""Weights, main gradients and optimizer states of a share, laid out as Megatron lays them out.

One design choice: one flat buffer for dense weights and one for experts, of which parameters and
gradients are views, so that the distributed optimizer's part is a slice and byte counts are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from launch.plan.measure.layers import Experts, StageShare
from launch.plan.measure.share import Share

ADDED_AT_ONCE = 2**22
"""Values; on CPU torch widens a bf16 summand in a copy, which the fused kernel does not."""


class Buffer:
    """A flat buffer of weights, and what training keeps beside it."""

    def __init__(self, owners: list[tuple[nn.Module, str]], shards: int, like: Tensor) -> None:
        sizes = [getattr(owner, name).shape for owner, name in owners]
        self.weights = like.new_empty(sum(size.numel() for size in sizes)).normal_(0.0, 0.02)
        self.shard = slice(0, math.ceil(len(self.weights) / shards))
        self.parameters: list[nn.Parameter] = []
        pieces = self.weights.split([size.numel() for size in sizes])
        for (owner, name), size, piece in zip(owners, sizes, pieces, strict=True):
            if "norm" in name:
                piece.fill_(1.0)
            parameter = nn.Parameter(piece.view(size))
            setattr(owner, name, parameter)
            self.parameters.append(parameter)

    def allocate_gradients(self) -> None:
        """fp32 main gradients; each bf16 gradient is added and dropped as soon as it is there."""
        # Filled, because pages that nobody wrote are not in memory yet.
        self.gradients = torch.empty_like(self.weights, dtype=torch.float32).fill_(0.0)
        pieces = self.gradients.split([p.numel() for p in self.parameters])
        for parameter, piece in zip(self.parameters, pieces, strict=True):
            parameter.register_post_accumulate_grad_hook(_adder(piece))

    def allocate_optimizer(self) -> None:
        """fp32 weights and both moments of this rank's part; the moments come with a first step."""
        self.master = nn.Parameter(self.weights[self.shard].float())
        self.optimizer = torch.optim.AdamW([self.master], lr=1e-6, fused=True)
        self.step()

    def step(self) -> None:
        """One step on this rank's part; the others' parts of the weights stay as they are."""
        self.master.grad = self.gradients[self.shard]
        self.optimizer.step()
        self.master.grad = None
        self.weights[self.shard].copy_(self.master.detach())


def build(share: Share, device: torch.device) -> tuple[StageShare, list[Buffer]]:
    """The stage with bf16 weights, dense buffer first, then that of experts if there are any."""
    with torch.device("meta"):
        stage = StageShare(share)
    dense: list[tuple[nn.Module, str]] = []
    expert: list[tuple[nn.Module, str]] = []
    for module in stage.modules():
        for name, _ in module.named_parameters(recurse=False):
            routed = isinstance(module, Experts) and name != "router"
            (expert if routed else dense).append((module, name))
    like = torch.empty(0, dtype=torch.bfloat16, device=device)
    buffers = [Buffer(dense, share.shards, like)]
    if expert:
        buffers.append(Buffer(expert, share.expert_shards, like))
    return stage, buffers


def _adder(main_gradient: Tensor) -> Callable[[Tensor], None]:
    parts = main_gradient.view(-1).split(ADDED_AT_ONCE)

    def add(parameter: Tensor) -> None:
        assert parameter.grad is not None
        for part, piece in zip(parts, parameter.grad.view(-1).split(ADDED_AT_ONCE), strict=True):
            part.add_(piece)
        parameter.grad = None

    return add
