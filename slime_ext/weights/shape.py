"""The shape of a decoder as its Hugging Face config states it.

One design choice: one small record, read from `config.json` without transformers, is shared by the
engine, the trainer, export, the memory plan and slime's arguments, so none of them can disagree
about a head count or a rope base. What each of them supports is checked there, not here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from slime_ext.weights.rope_config import RopeScaling, rope_from_config

Architecture = Literal["llama", "qwen2", "qwen3", "qwen3_moe", "qwen3_5"]

_ARCHITECTURES: dict[str, Architecture] = {
    "LlamaForCausalLM": "llama",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "Qwen3_5ForCausalLM": "qwen3_5",
    "Qwen3_5ForConditionalGeneration": "qwen3_5",
}


@dataclass(frozen=True, slots=True)
class MoEShape:
    """Experts of a mixture; every layer has them."""

    num_experts: int
    top_k: int
    ffn_size: int
    """Width of one expert."""
    normalised: bool
    """The weights of the chosen experts sum to 1."""


@dataclass(frozen=True, slots=True)
class HybridShape:
    """Gated-delta-net layers between full-attention layers (Qwen3.5)."""

    full_attention_layers: tuple[int, ...]
    """Indices from 0; only these keep keys and values of every token."""
    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel: int
    output_gate: bool
    """Full attention has a sigmoid gate as wide as its queries, from the same projection."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of one decoder."""

    architecture: Architecture
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    ffn_size: int
    """Width of the dense feed-forward; without use where `moe` is given."""
    vocab_size: int
    rms_norm_eps: float
    rope_theta: float
    rope_scaling: RopeScaling
    tied_embeddings: bool
    max_position_embeddings: int
    moe: MoEShape | None = None
    hybrid: HybridShape | None = None
    partial_rotary: float = 1.0
    """Share of a head's dimensions that rotate."""
    dual_chunk: bool = False
    """The config asks for dual chunk attention (Qwen2.5-1M), which is exact below its chunk size
    of 262,144; Megatron trains with plain attention."""

    @property
    def qk_norm(self) -> bool:
        """RMSNorm on each query and key head."""
        return self.architecture in ("qwen3", "qwen3_moe", "qwen3_5")

    @property
    def qkv_bias(self) -> bool:
        """A bias on the query, key and value projections."""
        return self.architecture == "qwen2"

    @property
    def attention_layers(self) -> int:
        """Layers that keep keys and values of every token."""
        return len(self.hybrid.full_attention_layers) if self.hybrid else self.num_layers


def read_shape(folder: Path) -> ModelShape:
    """The shape stated by `folder/config.json`.

    Raises ValueError for an architecture or a rope scaling that is not known and a file that is no
    JSON, FileNotFoundError where there is no config.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no config.json; name a Hugging Face model folder")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); fetch the model again") from None
    return shape_from_config(config, where=str(path))


def shape_from_config(config: Mapping[str, Any], where: str = "config") -> ModelShape:
    """The shape of a parsed Hugging Face config (of its `text_config`, where it has one); `where`
    names it in errors.

    Raises ValueError for an architecture, a bias or a rope scaling that is not known, and for a
    missing size.
    """
    names = config.get("architectures") or []
    known = [name for name in names if name in _ARCHITECTURES]
    if not known:
        raise ValueError(
            f"{where}: architectures = {names} is not supported; known: {sorted(_ARCHITECTURES)}"
        )
    # Of a nested config, only the tie is read from the outer level by transformers.
    text = {**config, **(config.get("text_config") or {})}
    if "tie_word_embeddings" in config:
        text["tie_word_embeddings"] = config["tie_word_embeddings"]
    if text.get("attention_bias"):
        raise ValueError(f"{where}: attention_bias = true is not supported")
    try:
        return _shape(text, _ARCHITECTURES[known[0]], where)
    except KeyError as error:
        raise ValueError(f"{where} lacks {error}; take the config.json of the model") from None


def _shape(text: Mapping[str, Any], architecture: Architecture, where: str) -> ModelShape:
    rope = rope_from_config(text, where)
    heads = int(text["num_attention_heads"])
    return ModelShape(
        architecture=architecture,
        num_layers=int(text["num_hidden_layers"]),
        hidden_size=int(text["hidden_size"]),
        num_heads=heads,
        num_kv_heads=int(text.get("num_key_value_heads") or heads),
        head_dim=int(text.get("head_dim") or text["hidden_size"] // heads),
        ffn_size=int(text["intermediate_size"]),
        vocab_size=int(text["vocab_size"]),
        rms_norm_eps=float(text["rms_norm_eps"]),
        rope_theta=rope.theta,
        rope_scaling=rope.scaling,
        tied_embeddings=bool(text.get("tie_word_embeddings", False)),
        max_position_embeddings=int(text["max_position_embeddings"]),
        moe=_moe(text, where) if architecture == "qwen3_moe" else None,
        hybrid=_hybrid(text) if architecture == "qwen3_5" else None,
        partial_rotary=rope.partial,
        dual_chunk=bool(text.get("dual_chunk_attention_config")),
    )


def _moe(text: Mapping[str, Any], where: str) -> MoEShape:
    if text.get("mlp_only_layers") or int(text.get("decoder_sparse_step", 1)) != 1:
        raise ValueError(
            f"{where}: dense layers between layers of experts (mlp_only_layers, "
            "decoder_sparse_step) are not supported"
        )
    return MoEShape(
        num_experts=int(text["num_experts"]),
        top_k=int(text["num_experts_per_tok"]),
        ffn_size=int(text["moe_intermediate_size"]),
        normalised=bool(text["norm_topk_prob"]),
    )


def _hybrid(text: Mapping[str, Any]) -> HybridShape:
    layers = int(text["num_hidden_layers"])
    every = int(text.get("full_attention_interval", 4))
    kinds = text.get("layer_types") or [
        "linear_attention" if (index + 1) % every else "full_attention" for index in range(layers)
    ]
    return HybridShape(
        full_attention_layers=tuple(i for i, kind in enumerate(kinds) if kind == "full_attention"),
        key_heads=int(text["linear_num_key_heads"]),
        value_heads=int(text["linear_num_value_heads"]),
        key_head_dim=int(text["linear_key_head_dim"]),
        value_head_dim=int(text["linear_value_head_dim"]),
        conv_kernel=int(text["linear_conv_kernel_dim"]),
        output_gate=bool(text.get("attn_output_gate", True)),
    )
