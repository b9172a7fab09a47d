"""Rotary frequencies against transformers, plain, with Llama 3.1's scaling and with YaRN."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from slime_ext.weights.rope import rotary_frequencies
from slime_ext.weights.rope_config import YarnRope
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


@given(
    factor=st.sampled_from([2.0, 4.0, 8.0]),
    original=st.sampled_from([64, 4096, 32768]),
    theta=st.sampled_from([500.0, 1e4, 1e6]),
    fast=st.sampled_from([16.0, 32.0]),
)
def test_yarn_equals_transformers(factor: float, original: int, theta: float, fast: float) -> None:
    from transformers import Qwen3Config
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    rope = {
        "rope_type": "yarn",
        "rope_theta": theta,
        "factor": factor,
        "original_max_position_embeddings": original,
        "beta_fast": fast,
    }
    config = Qwen3Config(
        head_dim=128, max_position_embeddings=int(factor * original), rope_parameters=rope
    )
    theirs, scale = ROPE_INIT_FUNCTIONS["yarn"](config, torch.device("cpu"))
    shape = shape_from_config({**config.to_dict(), "architectures": ["Qwen3ForCausalLM"]})
    assert isinstance(shape.rope_scaling, YarnRope)
    torch.testing.assert_close(rotary_frequencies(shape), theirs, rtol=1e-6, atol=0)
    assert shape.rope_scaling.attention_scale == pytest.approx(scale)
