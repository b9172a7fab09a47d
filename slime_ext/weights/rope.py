"""Rotary frequencies of a decoder, with Llama 3.1's scaling.

One design choice: the engine and the trainer call this one function, because megatron-core
hard-codes three of the four scaling constants and would differ from a checkpoint that states
others.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from slime_ext.weights.rope_config import Llama3Rope
from slime_ext.weights.shape import ModelShape


def rotary_frequencies(shape: ModelShape) -> Tensor:
    """Inverse frequencies [head_dim / 2] in radians per position, float32.

    RoPE: theta^(-2i / d). With `rope_scaling`, wavelengths above original / low_freq_factor are
    stretched by `factor`, those below original / high_freq_factor kept, the band between blended
    linearly in original / wavelength (Llama 3.1, as in transformers' `rope_type = "llama3"`).
    Raises ValueError for another kind of scaling.
    """
    exponent = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
    frequencies = 1.0 / (shape.rope_theta**exponent)
    if shape.rope_scaling is None:
        return frequencies
    if not isinstance(shape.rope_scaling, Llama3Rope):
        raise ValueError(f"{type(shape.rope_scaling).__name__} has no frequencies here")
    return _stretch(frequencies, shape.rope_scaling)


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
