"""Rotary frequencies against transformers, with and without Llama 3.1's scaling."""

from __future__ import annotations

import torch

from slime_ext.weights.rope import rotary_frequencies
from slime_ext.weights.shape import shape_from_config


def test_frequencies_equal_transformers(hf_model: torch.nn.Module) -> None:
    config = {**hf_model.config.to_dict(), "architectures": [type(hf_model).__name__]}
    ours = rotary_frequencies(shape_from_config(config))
    torch.testing.assert_close(ours, hf_model.model.rotary_emb.inv_freq, rtol=1e-6, atol=0)


def test_scaling_stretches_long_waves_only(hf_model: torch.nn.Module) -> None:
    config = {**hf_model.config.to_dict(), "architectures": [type(hf_model).__name__]}
    shape = shape_from_config(config)
    frequencies = rotary_frequencies(shape)
    plain = 1.0 / shape.rope_theta ** (torch.arange(0, 16, 2) / 16)
    if shape.rope_scaling is None:
        assert torch.equal(frequencies, plain)
    else:
        assert frequencies[0] == plain[0]
        torch.testing.assert_close(frequencies[-1], plain[-1] / 8)
        assert bool(((frequencies < plain) & (frequencies > plain / 8)).any())
