"""Tiny random model folders, written by transformers, and the requests put to them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from slime_ext.embedded.engine.model import Decoder
from slime_ext.embedded.engine.request import Request, SamplingParams

VOCAB, CONTEXT, EOS = 61, 512, 2
ModelMaker = Callable[..., tuple[Path, PreTrainedModel]]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> ModelMaker:
    """make_model(kind, tied, seed, max_shard_size) -> folder, and the model saved in it."""

    def make(
        kind: str = "qwen3", tied: bool = True, seed: int = 0, max_shard_size: str = "1GB"
    ) -> tuple[Path, PreTrainedModel]:
        sizes = {
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "max_position_embeddings": CONTEXT,
            "tie_word_embeddings": tied,
            "eos_token_id": EOS,
            "bos_token_id": 1,
        }
        torch.manual_seed(seed)
        model: PreTrainedModel
        if kind == "qwen3":
            rope = {"rope_type": "default", "rope_theta": 10_000.0}
            model = Qwen3ForCausalLM(Qwen3Config(**sizes, rope_parameters=rope))
        else:
            rope = {
                "rope_type": "llama3",
                "rope_theta": 10_000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            }
            model = LlamaForCausalLM(LlamaConfig(**sizes, rope_parameters=rope))
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if "norm" in name:
                    weight.uniform_(0.5, 1.5)
                else:
                    weight.normal_(std=0.25)
        folder = tmp_path_factory.mktemp(kind)
        model.eval().save_pretrained(folder, max_shard_size=max_shard_size)
        return folder, model

    return make


@pytest.fixture(scope="session")
def folder(make_model: ModelMaker) -> Path:
    """The folder of the default model."""
    return make_model()[0]


@pytest.fixture
def decoder(folder: Path) -> Decoder:
    return Decoder(folder)


@pytest.fixture
def ask() -> Callable[..., Request]:
    """ask(prompt, **sampling parameters) -> a request that stops at no token unless told to."""

    def make(prompt: list[int], rid: str = "r", **params: object) -> Request:
        return Request(rid, torch.tensor(prompt), SamplingParams(**params))  # type: ignore[arg-type]

    return make
