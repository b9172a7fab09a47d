"""Floating-point operations of one token, so that a stated throughput can be seen to be possible.

One design choice: what the GPU does is counted, recomputation included, because it is compared with
what the GPU can do.
"""

from __future__ import annotations

from slime_ext.weights.count import count_parameters
from slime_ext.weights.shape import ModelShape


def forward_flops(shape: ModelShape, tokens: float) -> float:
    """Operations a token of a forward pass over a sample of `tokens`: two a parameter that takes
    part, and causal attention over half of the sample; gated-delta-net scans are left out."""
    counts = count_parameters(shape)
    active = sum(counts.layers) + shape.vocab_size * shape.hidden_size
    if shape.moe:
        idle = 1 - shape.moe.top_k / shape.moe.num_experts
        active -= int(shape.num_layers * counts.layer_experts * idle)
    attention = 2 * tokens * shape.num_heads * shape.head_dim * shape.attention_layers
    return 2.0 * active + attention


def training_flops(shape: ModelShape, tokens: float, recompute: bool) -> float:
    """Operations a token of forward, backward (twice a forward) and recomputation (once)."""
    return (4 if recompute else 3) * forward_flops(shape, tokens)
