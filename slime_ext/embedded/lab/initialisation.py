"""The weights a warm start begins from.

One design choice: what a two-layer reader would spend most of its training on is given to it. All
embeddings share one offset, along which first-layer queries and keys meet so that head i looks
i + 1 tokens back whatever the tokens are; the second layer can match a fact by its words from the
first step on.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from slime_ext.weights.names import HF_EMBEDDING, expected_tensors
from slime_ext.weights.shape import ModelShape

EMBEDDING_STD = 0.08
MATRIX_STD = 0.06
QK_NORM_GAIN = 2.0
"""Both norms: attention logits of a matching pair reach about 10 instead of 3."""
POSITION_GAIN = 0.35
POSITION_FREQUENCIES = 5
"""The fastest rotary pairs (periods 6 to 63 tokens at base 10,000), which tell neighbours apart."""
_OUTPUTS = ("o_proj.weight", "down_proj.weight")


def initial_weights(shape: ModelShape, seed: int) -> dict[str, Tensor]:
    """Weights by Hugging Face name, float32; the same for the same `seed`."""
    generator = torch.Generator().manual_seed(seed)
    residual_std = MATRIX_STD / math.sqrt(2 * shape.num_layers)
    weights: dict[str, Tensor] = {}
    for name, size in expected_tensors(shape).items():
        if len(size) == 1:
            gain = QK_NORM_GAIN if name.endswith(("q_norm.weight", "k_norm.weight")) else 1.0
            weights[name] = torch.full(size, gain)
        else:
            std = EMBEDDING_STD if name == HF_EMBEDDING else MATRIX_STD
            std = residual_std if name.endswith(_OUTPUTS) else std
            weights[name] = torch.randn(size, generator=generator) * std
    offset = torch.randn(shape.hidden_size, generator=generator)
    offset /= offset.norm()
    # As long as the random part of an embedding, so half of each normed input is the offset.
    weights[HF_EMBEDDING] += offset * EMBEDDING_STD * math.sqrt(shape.hidden_size)
    _look_back(weights, offset, shape)
    return weights


def _look_back(weights: dict[str, Tensor], offset: Tensor, shape: ModelShape) -> None:
    """Point head i of the first layer at the token (i mod 4) + 1 places back.

    A rotated key of constant angle 0 and a rotated query of constant angle -d w agree best, over
    all frequencies w, where the key stands d places before the query.
    """
    half = shape.head_dim // 2
    pairs = torch.arange(POSITION_FREQUENCIES)
    frequencies = shape.rope_theta ** (-pairs.float() * 2 / shape.head_dim)
    prefix = "model.layers.0.self_attn."
    keys = weights[prefix + "k_proj.weight"].view(shape.num_kv_heads, shape.head_dim, -1)
    keys[:, pairs] += POSITION_GAIN * offset
    queries = weights[prefix + "q_proj.weight"].view(shape.num_heads, shape.head_dim, -1)
    for head in range(shape.num_heads):
        angles = -(head % 4 + 1) * frequencies
        queries[head, pairs] += POSITION_GAIN * angles.cos()[:, None] * offset
        queries[head, pairs + half] += POSITION_GAIN * angles.sin()[:, None] * offset
