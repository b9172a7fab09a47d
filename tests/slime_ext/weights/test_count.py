"""Parameter counts against the models that megatron-core and transformers build."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from launch.models.facts import facts_shape, known_models
from slime_ext.embedded import megatron_cpu
from slime_ext.weights.count import count_parameters, padded_vocab_size
from slime_ext.weights.shape import ModelShape, shape_from_config

PUBLISHED = {
    "Qwen3-4B-Thinking-2507": 4.02,
    "DeepSeek-R1-0528-Qwen3-8B": 8.19,
    "Qwen3-30B-A3B-Thinking-2507": 30.53,
    "Qwen3-30B-A3B-Instruct-2507": 30.53,
    "Qwen2.5-7B-Instruct-1M": 7.62,
    "Qwen2.5-14B-Instruct-1M": 14.77,
    "Llama-3.1-8B-Instruct": 8.03,
    "Qwen3-14B": 14.77,
    "SmolLM2-135M-Instruct": 0.13,
    "Qwen3-0.6B": 0.60,
}
"""Billions, from the model cards."""
HYBRID = {"Qwen3.5-4B", "Qwen3.5-9B"}


def megatron_model(shape: ModelShape, monkeypatch: pytest.MonkeyPatch) -> torch.nn.Module:
    """megatron-core's GPTModel of this shape, local spec, without memory for its weights."""
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.transformer.transformer_config import TransformerConfig

    megatron_cpu.init_single_process()
    # megatron-core places its weights on the current device.
    monkeypatch.setattr(torch.cuda, "current_device", lambda: torch.device("meta"))
    experts: dict[str, Any] = {}
    if shape.moe:
        experts = {
            "num_moe_experts": shape.moe.num_experts,
            "moe_ffn_hidden_size": shape.moe.ffn_size,
            "moe_router_topk": shape.moe.top_k,
            "moe_router_load_balancing_type": "none",
        }
    config = TransformerConfig(
        num_layers=shape.num_layers,
        hidden_size=shape.hidden_size,
        num_attention_heads=shape.num_heads,
        num_query_groups=shape.num_kv_heads,
        kv_channels=shape.head_dim,
        ffn_hidden_size=shape.ffn_size,
        normalization="RMSNorm",
        qk_layernorm=shape.qk_norm,
        gated_linear_unit=True,
        activation_func=torch.nn.functional.silu,
        add_bias_linear=False,
        add_qkv_bias=shape.qkv_bias,
        perform_initialization=False,
        persist_layer_norm=False,
        masked_softmax_fusion=False,
        gradient_accumulation_fusion=False,
        bias_dropout_fusion=False,
        **experts,
    )
    spec = get_gpt_layer_local_spec(
        num_experts=shape.moe.num_experts if shape.moe else None,
        qk_layernorm=shape.qk_norm,
        normalization="RMSNorm",
    )
    with torch.device("meta"):
        return GPTModel(
            config=config,
            transformer_layer_spec=spec,
            vocab_size=shape.vocab_size,
            max_sequence_length=shape.max_position_embeddings,
            position_embedding_type="rope",
            share_embeddings_and_output_weights=shape.tied_embeddings,
        )


def parameters(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_counts_equal_those_of_the_megatron_model(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = facts_shape(name)
    counts = count_parameters(shape)
    model: Any = megatron_model(shape, monkeypatch)
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    assert counts.total == parameters(model)
    assert counts.embedding == parameters(model.embedding)
    assert counts.head == (0 if shape.tied_embeddings else parameters(model.output_layer))
    assert counts.final_norm == parameters(model.decoder.final_layernorm)
    layer = model.decoder.layers[0]
    assert counts.layer_attention == parameters(layer.self_attention)
    assert counts.layer_norms == sum(
        parameters(norm) for norm in (layer.input_layernorm, layer.pre_mlp_layernorm)
    )
    assert counts.layer_mlp + counts.layer_experts == parameters(layer.mlp)
    if shape.moe:
        assert counts.layer_experts == parameters(layer.mlp.experts)
    assert round(counts.total / 1e9, 2) == PUBLISHED[name]


@pytest.mark.parametrize("name", sorted(HYBRID))
def test_counts_of_a_hybrid_equal_those_of_transformers(name: str) -> None:
    from transformers import Qwen3_5ForCausalLM, Qwen3_5TextConfig

    shape = facts_shape(name)
    counts = count_parameters(shape)
    text = facts_config(name)["text_config"]
    with torch.device("meta"):
        model: Any = Qwen3_5ForCausalLM(Qwen3_5TextConfig(**text))
    assert shape.hybrid is not None
    assert counts.total == parameters(model)
    kinds = [hasattr(layer, "self_attn") for layer in model.model.layers]
    assert tuple(i for i, full in enumerate(kinds) if full) == shape.hybrid.full_attention_layers
    assert counts.layers == tuple(parameters(layer) for layer in model.model.layers)
    assert counts.layer_attention == parameters(model.model.layers[3].self_attn)
    assert counts.layer_linear_attention == parameters(model.model.layers[0].linear_attn)


def facts_config(name: str) -> dict[str, Any]:
    import json

    from launch.models.facts import facts_file

    config: dict[str, Any] = json.loads(Path(facts_file(name)).read_text())["config"]
    return config


def test_every_model_of_the_facts_is_counted_here() -> None:
    assert set(known_models()) == set(PUBLISHED) | HYBRID


@given(
    layers=st.integers(1, 4),
    heads=st.sampled_from([1, 2, 4]),
    repeats=st.sampled_from([1, 2]),
    head_dim=st.sampled_from([4, 8]),
    tied=st.booleans(),
)
def test_counts_equal_the_name_tables_shapes(
    layers: int, heads: int, repeats: int, head_dim: int, tied: bool
) -> None:
    from math import prod

    from slime_ext.weights.names import megatron_shapes

    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "num_hidden_layers": layers,
        "hidden_size": 24,
        "num_attention_heads": heads * repeats,
        "num_key_value_heads": heads,
        "head_dim": head_dim,
        "intermediate_size": 40,
        "vocab_size": 50,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10_000,
        "tie_word_embeddings": tied,
        "max_position_embeddings": 64,
    }
    shape = shape_from_config(config)
    assert count_parameters(shape).total == sum(
        prod(size) for size in megatron_shapes(shape).values()
    )


@given(vocab=st.integers(1, 300_000), tp=st.sampled_from([1, 2, 4, 8]))
def test_the_padded_vocabulary_is_the_next_multiple(vocab: int, tp: int) -> None:
    shape = facts_shape("Qwen3-14B")
    import dataclasses

    padded = padded_vocab_size(dataclasses.replace(shape, vocab_size=vocab), tp)
    assert padded % (128 * tp) == 0
    assert 0 <= padded - vocab < 128 * tp
