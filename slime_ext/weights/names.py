"""The one table of tensor names: Hugging Face (Qwen3, Llama) <-> Megatron.

One design choice: a row names one Megatron tensor and the Hugging Face tensors it is made of;
loading, export and weight updates all walk the same rows, so they cannot disagree. The Megatron
side carries the names of a live local-spec model; `torch_dist_name` gives the Transformer Engine
name under which a torch_dist file (and slime's converter) knows the same tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from slime_ext.weights.fuse import join_gate_up, join_qkv, split_gate_up, split_qkv
from slime_ext.weights.shape import ModelShape

EMBEDDING = "embedding.word_embeddings.weight"
OUTPUT_LAYER = "output_layer.weight"
HF_EMBEDDING = "model.embed_tokens.weight"
HF_LM_HEAD = "lm_head.weight"

# Megatron's `sharded_state_dict_keys_map` of a dense local-spec layer, in the same direction.
_TORCH_DIST = {
    "input_layernorm.weight": "self_attention.linear_qkv.layer_norm_weight",
    "pre_mlp_layernorm.weight": "mlp.linear_fc1.layer_norm_weight",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One Megatron tensor and the Hugging Face tensors it holds, in order."""

    megatron: str
    hf: tuple[str, ...]


_LAYER = (
    Row("input_layernorm.weight", ("input_layernorm.weight",)),
    Row(
        "self_attention.linear_qkv.weight",
        ("self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"),
    ),
    Row("self_attention.linear_proj.weight", ("self_attn.o_proj.weight",)),
    Row("pre_mlp_layernorm.weight", ("post_attention_layernorm.weight",)),
    Row("mlp.linear_fc1.weight", ("mlp.gate_proj.weight", "mlp.up_proj.weight")),
    Row("mlp.linear_fc2.weight", ("mlp.down_proj.weight",)),
)
_QK_NORM = (
    Row("self_attention.q_layernorm.weight", ("self_attn.q_norm.weight",)),
    Row("self_attention.k_layernorm.weight", ("self_attn.k_norm.weight",)),
)


def rows(shape: ModelShape) -> Iterator[Row]:
    """Every row of a model, layers in order, with full names on both sides."""
    yield Row(EMBEDDING, (HF_EMBEDDING,))
    for layer in range(shape.num_layers):
        for row in _LAYER + (_QK_NORM if shape.qk_norm else ()):
            yield Row(
                f"decoder.layers.{layer}.{row.megatron}",
                tuple(f"model.layers.{layer}.{name}" for name in row.hf),
            )
    yield Row("decoder.final_layernorm.weight", ("model.norm.weight",))
    if not shape.tied_embeddings:
        yield Row(OUTPUT_LAYER, (HF_LM_HEAD,))


def torch_dist_name(name: str) -> str:
    """The name under which a torch_dist checkpoint stores the live dense tensor `name`."""
    for live, stored in _TORCH_DIST.items():
        if name.startswith("decoder.layers.") and name.endswith("." + live):
            return name.removesuffix(live) + stored
    return name


def hf_shapes(shape: ModelShape) -> dict[str, tuple[int, ...]]:
    """Every Hugging Face tensor of the model, with its shape."""
    hidden, heads, kv = shape.hidden_size, shape.num_heads, shape.num_kv_heads
    by_suffix: dict[str, tuple[int, ...]] = {
        "embed_tokens.weight": (shape.vocab_size, hidden),
        "lm_head.weight": (shape.vocab_size, hidden),
        "q_proj.weight": (heads * shape.head_dim, hidden),
        "k_proj.weight": (kv * shape.head_dim, hidden),
        "v_proj.weight": (kv * shape.head_dim, hidden),
        "o_proj.weight": (hidden, heads * shape.head_dim),
        "q_norm.weight": (shape.head_dim,),
        "k_norm.weight": (shape.head_dim,),
        "gate_proj.weight": (shape.ffn_size, hidden),
        "up_proj.weight": (shape.ffn_size, hidden),
        "down_proj.weight": (hidden, shape.ffn_size),
    }
    names = [name for row in rows(shape) for name in row.hf]
    return {name: by_suffix.get(_suffix(name), (hidden,)) for name in names}


def hf_to_megatron(state: Mapping[str, Tensor], shape: ModelShape) -> dict[str, Tensor]:
    """The Megatron tensors of a Hugging Face state; single-tensor rows share its memory.

    A tied model may carry `lm_head.weight` as a copy of the embedding, which is dropped. Raises
    ValueError naming every missing, unexpected or wrongly shaped tensor.
    """
    state = _without_tied_head(state, shape)
    _check(state, hf_shapes(shape))
    return {
        row.megatron: _join(row, [state[name] for name in row.hf], shape) for row in rows(shape)
    }


def megatron_to_hf(state: Mapping[str, Tensor], shape: ModelShape) -> dict[str, Tensor]:
    """The Hugging Face tensors of a full (unsharded) Megatron state; the inverse, bit for bit.

    Raises ValueError naming every missing, unexpected or wrongly shaped tensor.
    """
    _check(state, megatron_shapes(shape))
    result: dict[str, Tensor] = {}
    for row in rows(shape):
        parts = _split(row, state[row.megatron], shape)
        result.update(zip(row.hf, parts, strict=True))
    return result


def megatron_shapes(shape: ModelShape) -> dict[str, tuple[int, ...]]:
    """Every live Megatron tensor of the model, unsharded, with its shape."""
    parts = hf_shapes(shape)
    result: dict[str, tuple[int, ...]] = {}
    for row in rows(shape):
        first = parts[row.hf[0]]
        result[row.megatron] = (sum(parts[name][0] for name in row.hf), *first[1:])
    return result


def _join(row: Row, parts: list[Tensor], shape: ModelShape) -> Tensor:
    if row.megatron.endswith("linear_qkv.weight"):
        return join_qkv(parts[0], parts[1], parts[2], shape.num_kv_heads)
    if row.megatron.endswith("linear_fc1.weight"):
        return join_gate_up(parts[0], parts[1])
    return parts[0]


def _split(row: Row, tensor: Tensor, shape: ModelShape) -> tuple[Tensor, ...]:
    if row.megatron.endswith("linear_qkv.weight"):
        return split_qkv(tensor, shape.num_heads, shape.num_kv_heads)
    if row.megatron.endswith("linear_fc1.weight"):
        return split_gate_up(tensor)
    return (tensor,)


def _suffix(name: str) -> str:
    return ".".join(name.split(".")[-2:])


def _without_tied_head(state: Mapping[str, Tensor], shape: ModelShape) -> Mapping[str, Tensor]:
    if not shape.tied_embeddings or HF_LM_HEAD not in state:
        return state
    embedding = state.get(HF_EMBEDDING)
    if embedding is not None and not torch.equal(state[HF_LM_HEAD], embedding):
        raise ValueError(
            f"the config says tie_word_embeddings = true, but {HF_LM_HEAD} differs from "
            f"{HF_EMBEDDING}; set tie_word_embeddings = false in config.json"
        )
    return {name: tensor for name, tensor in state.items() if name != HF_LM_HEAD}


def _check(state: Mapping[str, Tensor], expected: Mapping[str, tuple[int, ...]]) -> None:
    missing = [name for name in expected if name not in state]
    unexpected = [name for name in state if name not in expected]
    wrong = [
        f"{name} is {tuple(state[name].shape)}, expected {size}"
        for name, size in expected.items()
        if name in state and tuple(state[name].shape) != size
    ]
    problems = [
        f"{label}: {', '.join(found)}"
        for label, found in (
            ("missing", missing),
            ("unexpected", unexpected),
            ("wrong shape", wrong),
        )
        if found
    ]
    if problems:
        raise ValueError(
            "the weights do not fit config.json; "
            + "; ".join(problems)
            + "; check that config.json and the weights come from the same model"
        )
