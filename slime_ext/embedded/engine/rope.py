"""Rotary embedding as complex factors, Llama 3.1 scaling included.

One design choice: the two halves of a head that rotate together are stored side by side (the loader
permutes the projection rows), so a rotation is one complex product instead of four real ones.
"""

from __future__ import annotations

import math

import torch

from slime_ext.weights.rope_config import Llama3Rope
from slime_ext.weights.shape import ModelShape


def inverse_frequencies(shape: ModelShape) -> torch.Tensor:
    """Angle per position of each pair, float32 [head_dim / 2]."""
    exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.int64).float() / shape.head_dim
    plain = 1.0 / (shape.rope_theta**exponents)
    scaling = shape.rope_scaling
    return _llama3(plain, scaling) if isinstance(scaling, Llama3Rope) else plain


def _llama3(plain: torch.Tensor, scaling: Llama3Rope) -> torch.Tensor:
    """Wavelengths beyond the original context are stretched by `factor`, those well inside it are
    kept, those between are blended (Llama 3.1's rope scaling)."""
    turns = scaling.original_max_position_embeddings * plain / (2 * math.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    keep = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    return keep * plain + (1.0 - keep) * plain / scaling.factor


def pair_order(head_dim: int) -> torch.Tensor:
    """Order of a head's rows that puts element i beside element i + head_dim / 2."""
    return torch.arange(head_dim).view(2, head_dim // 2).t().reshape(-1)


class RotationTable:
    """Unit complex numbers per position, extended on demand as most prompts are short."""

    def __init__(self, shape: ModelShape) -> None:
        self._frequencies = inverse_frequencies(shape)
        self._table = torch.empty(0, len(self._frequencies), dtype=torch.complex64)

    def upto(self, length: int) -> torch.Tensor:
        """At least the first `length` positions, complex64 [>= length, head_dim / 2]."""
        if length > len(self._table):
            angles = torch.arange(max(1024, 2 * length)).float()[:, None] * self._frequencies
            self._table = torch.polar(torch.ones_like(angles), angles)
        return self._table


def rotate(heads: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    """`heads` [..., h, head_dim] in pair order turned by `factors` [..., 1, head_dim / 2]."""
    pairs = torch.view_as_complex(heads.view(*heads.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * factors).flatten(-2)
