"""Configs of tiny models of every family, as `config.json` states them.

Sizes differ on purpose: queries are wider than the hidden state, and no two axes are equally long.
"""

from __future__ import annotations

from typing import Any

VOCAB = 97
_SIZES: dict[str, Any] = {
    "vocab_size": VOCAB,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10_000.0,
}
_FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"architectures": ["LlamaForCausalLM"], "model_type": "llama"},
    "qwen2": {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "head_dim": None},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3"},
    "qwen3_moe": {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    },
}
FAMILIES = tuple(_FAMILIES)


def tiny_config(family: str, tied: bool, **changed: Any) -> dict[str, Any]:
    """The config of a model of `family`, some values changed."""
    config = {**_SIZES, **_FAMILIES[family], "tie_word_embeddings": tied, **changed}
    return {name: value for name, value in config.items() if value is not None}
