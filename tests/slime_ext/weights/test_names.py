"""The name table: round trips, layout of fused projections, and errors that name tensors."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from slime_ext.weights.names import (
    Place,
    expected_tensors,
    hf_to_megatron,
    megatron_shapes,
    megatron_to_hf,
    rows,
)
from slime_ext.weights.shape import ModelShape, shape_from_config

SHAPE = ModelShape(
    architecture="qwen3",
    num_layers=1,
    hidden_size=6,
    num_heads=4,
    num_kv_heads=2,
    head_dim=2,
    ffn_size=5,
    vocab_size=7,
    rms_norm_eps=1e-6,
    rope_theta=1e4,
    rope_scaling=None,
    tied_embeddings=False,
    max_position_embeddings=32,
)


def random_state(shape: ModelShape) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.randn(size, generator=generator)
        for name, size in expected_tensors(shape).items()
    }


def test_round_trip_is_exact_and_names_match_transformers(hf_model: torch.nn.Module) -> None:
    shape = shape_from_config(
        {**hf_model.config.to_dict(), "architectures": [type(hf_model).__name__]}
    )
    state = dict(hf_model.state_dict())
    if shape.tied_embeddings:
        del state["lm_head.weight"]
    assert {name: tuple(t.shape) for name, t in state.items()} == expected_tensors(shape)
    megatron = hf_to_megatron(state, shape)
    assert {name: tuple(t.shape) for name, t in megatron.items()} == megatron_shapes(shape)
    back = megatron_to_hf(megatron, shape)
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], state[name]) for name in state)


def test_round_trip_is_exact_in_bfloat16() -> None:
    state = {name: tensor.bfloat16() for name, tensor in random_state(SHAPE).items()}
    back = megatron_to_hf(hf_to_megatron(state, SHAPE), SHAPE)
    assert all(torch.equal(back[name], state[name]) for name in state)


def test_qkv_rows_interleave_per_kv_head_and_gate_lies_above_up() -> None:
    state = random_state(SHAPE)
    fused = hf_to_megatron(state, SHAPE)
    qkv = fused["decoder.layers.0.self_attention.linear_qkv.weight"]
    attention = "model.layers.0.self_attn."
    q, k, v = (state[f"{attention}{part}_proj.weight"] for part in "qkv")
    # Two query heads of two rows, then one key head, then one value head, per kv head.
    assert torch.equal(qkv, torch.cat((q[:4], k[:2], v[:2], q[4:], k[2:], v[2:])))
    fc1 = fused["decoder.layers.0.mlp.linear_fc1.weight"]
    assert torch.equal(fc1[:5], state["model.layers.0.mlp.gate_proj.weight"])
    assert torch.equal(fc1[5:], state["model.layers.0.mlp.up_proj.weight"])


def test_missing_unexpected_and_misshapen_tensors_are_named() -> None:
    state = random_state(SHAPE)
    del state["model.norm.weight"]
    state["model.layers.9.odd.weight"] = torch.zeros(1)
    state["lm_head.weight"] = torch.zeros(3, 3)
    with pytest.raises(ValueError) as error:
        hf_to_megatron(state, SHAPE)
    for part in (
        "missing: model.norm.weight",
        "unexpected: model.layers.9.odd",
        "lm_head.weight is (3, 3)",
    ):
        assert part in str(error.value)
    with pytest.raises(ValueError, match=r"missing: .*linear_fc2"):
        megatron_to_hf({}, SHAPE)


def test_tied_head_copy_is_dropped_but_a_different_head_is_refused() -> None:
    tied = replace(SHAPE, tied_embeddings=True)
    state = random_state(tied)
    state["lm_head.weight"] = state["model.embed_tokens.weight"].clone()
    assert "output_layer.weight" not in hf_to_megatron(state, tied)
    state["lm_head.weight"][0, 0] += 1
    with pytest.raises(ValueError, match="tie_word_embeddings"):
        hf_to_megatron(state, tied)


def test_torch_dist_files_know_norms_by_transformer_engines_names_first() -> None:
    places = {row.megatron: list(row.stored(SHAPE)) for row in rows(SHAPE)}
    assert places["decoder.layers.0.pre_mlp_layernorm.weight"] == [
        Place("decoder.layers.mlp.linear_fc1.layer_norm_weight", (0,), (1,)),
        Place("decoder.layers.0.mlp.linear_fc1.layer_norm_weight"),
        Place("decoder.layers.pre_mlp_layernorm.weight", (0,), (1,)),
        Place("decoder.layers.0.pre_mlp_layernorm.weight"),
    ]
    assert places["output_layer.weight"] == [Place("output_layer.weight")]
