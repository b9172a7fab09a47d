"""What a config.json says, in every spelling, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from slime_ext.weights.rope_config import Llama3Rope, YarnRope
from slime_ext.weights.shape import read_shape, shape_from_config

DENSE: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "vocab_size": 100,
    "rms_norm_eps": 1e-6,
    "rope_theta": 5_000_000,
    "max_position_embeddings": 1024,
}
LINEAR = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "linear_conv_kernel_dim": 4,
}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in DENSE.items() if name != key}


def test_a_rope_base_inside_rope_parameters_is_found() -> None:
    hidden = without("rope_theta")
    hidden["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e7}
    assert shape_from_config(hidden).rope_theta == 1e7
    assert shape_from_config(DENSE).rope_theta == 5e6


def test_the_newer_spelling_of_the_base_wins() -> None:
    both = DENSE | {"rope_parameters": {"rope_type": "default", "rope_theta": 1e7}}
    assert shape_from_config(both).rope_theta == 1e7


def test_a_config_without_a_rope_base_is_refused() -> None:
    with pytest.raises(ValueError, match="neither rope_theta nor rope_parameters"):
        shape_from_config(without("rope_theta"))


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_scaling_is_read_in_both_spellings(key: str) -> None:
    llama = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    assert shape_from_config(DENSE | {key: llama}).rope_scaling == Llama3Rope(8.0, 1.0, 4.0, 8192)
    yarn = {
        "type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 32768,
        "attn_factor": 0.88,
    }
    assert shape_from_config(DENSE | {key: yarn}).rope_scaling == YarnRope(
        4.0, 32768, attn_factor=0.88
    )


def test_an_unknown_scaling_and_a_missing_number_are_named() -> None:
    with pytest.raises(ValueError, match="'longrope' is not supported"):
        shape_from_config(DENSE | {"rope_scaling": {"rope_type": "longrope"}})
    with pytest.raises(ValueError, match="'yarn' lacks 'original_max_position_embeddings'"):
        shape_from_config(DENSE | {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}})


def test_yarn_keys_that_an_engine_would_ignore_are_refused() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    with pytest.raises(ValueError, match="'yarn' with mscale, truncate is not supported"):
        shape_from_config(DENSE | {"rope_scaling": yarn | {"truncate": False, "mscale": 1.0}})
    same = yarn | {"attention_factor": 1.13862943611}
    assert shape_from_config(DENSE | {"rope_scaling": same}).rope_scaling == YarnRope(4.0, 32768)
    with pytest.raises(ValueError, match=r"by 1\.13863; write attn_factor = 0\.8782488"):
        shape_from_config(DENSE | {"rope_scaling": yarn | {"attention_factor": 1.0}})


def test_deepseeks_factor_cancels_yarns_scale() -> None:
    scaling = YarnRope(4.0, 32768, attn_factor=0.8782488562869419)
    assert scaling.attention_scale == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "bias", "norm"),
    [
        ("LlamaForCausalLM", False, False),
        ("Qwen2ForCausalLM", True, False),
        ("Qwen3ForCausalLM", False, True),
    ],
)
def test_an_architecture_decides_on_biases_and_norms(name: str, bias: bool, norm: bool) -> None:
    shape = shape_from_config(DENSE | {"architectures": [name]})
    assert (shape.qkv_bias, shape.qk_norm) == (bias, norm)
    assert shape.attention_layers == 4


def test_experts_are_read_and_mixed_layers_refused() -> None:
    config = DENSE | {
        "architectures": ["Qwen3MoeForCausalLM"],
        "num_experts": 16,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "norm_topk_prob": True,
    }
    moe = shape_from_config(config).moe
    assert moe is not None
    assert (moe.num_experts, moe.top_k, moe.ffn_size, moe.normalised) == (16, 2, 32, True)
    with pytest.raises(ValueError, match="mlp_only_layers"):
        shape_from_config(config | {"mlp_only_layers": [0]})
    with pytest.raises(ValueError, match="lacks 'num_experts'"):
        shape_from_config({k: v for k, v in config.items() if k != "num_experts"})


def test_a_nested_hybrid_config_is_read() -> None:
    text = without("architectures") | LINEAR | {"full_attention_interval": 2}
    text["rope_parameters"] = {"rope_theta": 1e7, "partial_rotary_factor": 0.25}
    shape = shape_from_config(
        {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "tie_word_embeddings": True,
            "text_config": text,
        }
    )
    assert shape.hybrid is not None
    assert shape.hybrid.full_attention_layers == (1, 3)
    assert (shape.attention_layers, shape.tied_embeddings) == (2, True)
    assert (shape.partial_rotary, shape.rope_theta) == (0.25, 1e7)
    kinds = ["full_attention"] + ["linear_attention"] * 3
    listed = shape_from_config(
        {"architectures": ["Qwen3_5ForCausalLM"], **text, "layer_types": kinds}
    )
    assert listed.hybrid is not None
    assert listed.hybrid.full_attention_layers == (0,)


def test_dual_chunk_attention_is_kept_as_a_fact() -> None:
    assert not shape_from_config(DENSE).dual_chunk
    assert shape_from_config(DENSE | {"dual_chunk_attention_config": {"chunk_size": 8}}).dual_chunk


def test_what_is_not_known_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"GemmaForCausalLM.*known.*Qwen3ForCausalLM"):
        shape_from_config(DENSE | {"architectures": ["GemmaForCausalLM"]})
    with pytest.raises(ValueError, match="attention_bias = true"):
        shape_from_config(DENSE | {"attention_bias": True})
    (tmp_path / "config.json").write_text(json.dumps(without("vocab_size")))
    with pytest.raises(ValueError, match=r"config\.json lacks 'vocab_size'"):
        read_shape(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"holds no config\.json"):
        read_shape(tmp_path / "nowhere")
