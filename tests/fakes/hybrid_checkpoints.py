"""A tiny Qwen3.5: its Hugging Face folder, and a checkpoint as slime's trainer stores one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from slime_ext.embedded.lab.start import builtin_model
from slime_ext.weights.shape import read_shape
from tests.fakes.megatron_checkpoints import megatron_args
from tests.fakes.plain_checkpoints import write_plain

TEXT: dict[str, Any] = {
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 96,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 4,
    "vocab_size": 160,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 512,
    "tie_word_embeddings": True,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 1e7,
        "partial_rotary_factor": 0.25,
        "mrope_section": [2, 1, 1],
    },
}
VISION = {
    "depth": 1,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_heads": 2,
    "patch_size": 4,
    "out_hidden_size": 64,
    "num_position_embeddings": 16,
}
_DECODER = "model.language_model."
_STORED = {
    "linear_attn.": "self_attention.linear_attn.",
    "self_attn.o_proj.": "self_attention.linear_proj.",
    "self_attn.q_norm.": "self_attention.q_layernorm.",
    "self_attn.k_norm.": "self_attention.k_layernorm.",
    "mlp.down_proj.": "mlp.linear_fc2.",
    "post_attention_layernorm.weight": "mlp.linear_fc1.layer_norm_weight",
}


def write_folder(folder: Path) -> Path:
    """Write the model with random weights, a vision tower and a prediction head."""
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

    torch.manual_seed(0)
    config = Qwen3_5Config(text_config=TEXT, vision_config=VISION, tie_word_embeddings=True)
    Qwen3_5ForConditionalGeneration(config).to(torch.bfloat16).save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    tensors = {name: torch.randn(one.shape).to(one.dtype) for name, one in tensors.items()}
    tensors["mtp.fc.weight"] = torch.randn(64, 128).bfloat16()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(builtin_model("lab-hs") / file, folder / file)
    return folder


def write_hybrid(checkpoint: Path, folder: Path) -> Path:
    """Write the decoder of `folder` as slime stores it: layers numbered, rows padded."""
    import torch
    from safetensors.torch import load_file

    tensors = load_file(folder / "model.safetensors")
    decoder = {
        name.removeprefix(_DECODER): one
        for name, one in tensors.items()
        if name.startswith(_DECODER)
    }
    stored = {
        "embedding.word_embeddings.weight": torch.nn.functional.pad(
            decoder["embed_tokens.weight"], (0, 0, 0, 96), value=9.0
        ),
        "decoder.final_layernorm.weight": decoder["norm.weight"],
    }
    for layer in range(TEXT["num_hidden_layers"]):
        prefix = f"layers.{layer}."
        parts = {k.removeprefix(prefix): v for k, v in decoder.items() if k.startswith(prefix)}
        stored |= {f"decoder.{prefix}{name}": one for name, one in _layer(parts).items()}
    args = megatron_args(read_shape(folder), 256, 1)
    return write_plain(checkpoint, stored, args)


def _layer(parts: dict[str, Any]) -> dict[str, Any]:
    import torch

    linear = "linear_attn.A_log" in parts
    gate_up = torch.cat([parts[f"mlp.{name}_proj.weight"] for name in ("gate", "up")])
    norm = "input_layernorm.weight"
    stored = {
        "mlp.linear_fc1.weight": gate_up,
        f"self_attention.{norm if linear else 'linear_qkv.layer_norm_weight'}": parts[norm],
    }
    if not linear:
        stored["self_attention.linear_qkv.weight"] = _gated_qkv(parts)
    for name, one in parts.items():
        for ours, theirs in _STORED.items():
            if name.startswith(ours):
                stored[theirs + name.removeprefix(ours)] = one
    return stored


def _gated_qkv(parts: dict[str, Any]) -> Any:
    """For each key-value head: its query heads, their gates, its key, its value."""
    import torch

    groups, size, hidden = TEXT["num_key_value_heads"], TEXT["head_dim"], TEXT["hidden_size"]
    query = parts["self_attn.q_proj.weight"].view(groups, -1, 2, size, hidden).transpose(1, 2)
    keys = [parts[f"self_attn.{name}_proj.weight"] for name in "kv"]
    rows = [query.reshape(groups, -1, hidden), *(key.view(groups, -1, hidden) for key in keys)]
    return torch.cat(rows, 1).reshape(-1, hidden)
