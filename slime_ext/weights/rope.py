"""Rotary frequencies of a decoder, with Llama 3.1's scaling or YaRN.

One design choice: trainers get their frequencies here and put them into Megatron's model, because
megatron-core hard-codes three of Llama's four scaling constants, and slime passes on neither the
fourth nor YaRN.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from slime_ext.weights.rope_config import Llama3Rope, YarnRope
from slime_ext.weights.shape import ModelShape


def rotary_frequencies(shape: ModelShape) -> Tensor:
    """Inverse frequencies [head_dim / 2] in radians per position, float32.

    RoPE: theta^(-2i / d), d the rotated part of a head. Llama 3.1's scaling stretches wavelengths
    above original / low_freq_factor by `factor`, keeps those below original / high_freq_factor, and
    blends the band between linearly in original / wavelength (transformers' "llama3").
    """
    rotated = int(shape.head_dim * shape.partial_rotary)
    exponent = torch.arange(0, rotated, 2, dtype=torch.float32) / rotated
    frequencies = 1.0 / (shape.rope_theta**exponent)
    if isinstance(shape.rope_scaling, Llama3Rope):
        return _stretch(frequencies, shape.rope_scaling)
    if isinstance(shape.rope_scaling, YarnRope):
        return _yarn(frequencies, shape.rope_scaling, shape.rope_theta)
    return frequencies


def _stretch(frequencies: Tensor, scaling: Llama3Rope) -> Tensor:
    original = scaling.original_max_position_embeddings
    wavelength = 2 * math.pi / frequencies
    share = (original / wavelength - scaling.low_freq_factor) / (
        scaling.high_freq_factor - scaling.low_freq_factor
    )
    blended = (1 - share) * frequencies / scaling.factor + share * frequencies
    long_waves = wavelength > original / scaling.low_freq_factor
    short_waves = wavelength < original / scaling.high_freq_factor
    stretched = torch.where(long_waves, frequencies / scaling.factor, blended)
    return torch.where(short_waves, frequencies, stretched)


def _yarn(frequencies: Tensor, scaling: YarnRope, theta: float) -> Tensor:
    """YaRN (Peng et al. 2023, section 3.2): a dimension that turns more than `beta_fast` times over
    the original context is kept, one that turns less than `beta_slow` times is slowed down by
    `factor`, and those between are blended linearly in their index (whole indices, as transformers
    and SGLang round them)."""
    size = 2 * len(frequencies)

    def index_of(turns: float) -> float:
        """Where a dimension turns that often over the original context."""
        length = scaling.original_max_position_embeddings / (2 * math.pi * turns)
        return size * math.log(length) / (2 * math.log(theta))

    low = max(math.floor(index_of(scaling.beta_fast)), 0)
    high = min(math.ceil(index_of(scaling.beta_slow)), size - 1)
    ramp = (torch.arange(len(frequencies)) - low) / max(high - low, 1e-3)
    slowed = ramp.clamp(0.0, 1.0)
    return frequencies * (1 - slowed) + frequencies / scaling.factor * slowed
