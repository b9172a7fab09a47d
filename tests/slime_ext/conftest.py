"""Tiny random Hugging Face models of each supported kind, and recipes for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slime_ext.recipe.schema import Recipe

SIZES: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
}
LLAMA3_ROPE: dict[str, Any] = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
KINDS: dict[str, dict[str, Any]] = {
    "qwen3-tied": {"tie_word_embeddings": True},
    "qwen3-untied": {"tie_word_embeddings": False},
    "llama-tied": {"tie_word_embeddings": True},
    "llama-untied-scaled": {"tie_word_embeddings": False, "rope_parameters": LLAMA3_ROPE},
}


def tiny_model(kind: str) -> Any:
    """A float32 model whose norms and projections are all random, in evaluation mode."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    settings = {**SIZES, **KINDS[kind]}
    if kind.startswith("qwen3"):
        model: torch.nn.Module = Qwen3ForCausalLM(Qwen3Config(**settings))
    else:
        model = LlamaForCausalLM(LlamaConfig(**settings))
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.data.uniform_(0.5, 1.5)
        else:
            parameter.data.normal_(0, 0.15)
    return model.eval()


@pytest.fixture(params=sorted(KINDS))
def hf_model(request: pytest.FixtureRequest) -> Any:
    """One tiny model of each kind in turn."""
    return tiny_model(request.param)


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """A saved tiny tied Qwen3."""
    tiny_model("qwen3-tied").save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def make_recipe() -> Callable[..., Recipe]:
    """Make a recipe for a tiny model; keywords are sections merged over small defaults."""

    def make(**sections: dict[str, Any]) -> Recipe:
        base: dict[str, dict[str, Any]] = {
            "model": {"path": "unused"},
            "data": {"train": "unused", "max_prompt_tokens": 64},
            "rollout": {
                "steps": 1,
                "prompts": 4,
                "group_size": 2,
                "max_response_tokens": 16,
                "context_tokens": 128,
            },
            "reward": {"kind": "chunk"},
            "optimiser": {"lr": 1e-2},
        }
        merged = {key: {**base.get(key, {}), **sections.get(key, {})} for key in base | sections}
        return Recipe.model_validate({"name": "test", **merged})

    return make
