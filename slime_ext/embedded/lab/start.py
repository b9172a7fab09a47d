"""The checkpoints that ship with the package.

One design choice: a start is an ordinary Hugging Face folder inside the package, so everything that
loads a model loads it, and `warm_start.py` writes the same files again from nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from slime_ext.embedded.lab.tokenizer import save_tokenizer
from slime_ext.embedded.lab.vocabulary import BOS, EOS, PAD, TOKEN_IDS, VOCABULARY
from slime_ext.weights.shape import ModelShape, shape_from_config

STARTS: dict[str, str] = {"lab-hs": "start_hs"}
"""Name in a recipe (`builtin:lab-hs`) to folder beside this file."""

CONFIG: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": len(VOCABULARY),
    "max_position_embeddings": 1024,
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "tie_word_embeddings": True,
    "attention_bias": False,
    "hidden_act": "silu",
    "pad_token_id": TOKEN_IDS[PAD],
    "bos_token_id": TOKEN_IDS[BOS],
    "eos_token_id": TOKEN_IDS[EOS],
    "dtype": "float32",
}
"""108,416 parameters. The rope base stands twice: transformers 4 and 5 read different keys."""


def lab_shape() -> ModelShape:
    """The shape of every lab model."""
    return shape_from_config(CONFIG, where="the lab's config")


def builtin_model(name: str) -> Path:
    """The folder of the shipped checkpoint called `name` ("lab-hs").

    Raises ValueError for an unknown name.
    """
    if name not in STARTS:
        raise ValueError(f"no shipped model is called {name!r}; write one of {sorted(STARTS)}")
    return Path(__file__).parent / STARTS[name]


def start_files(name: str) -> list[Path]:
    """The files of the shipped checkpoint `name`: config, weights and tokenizer.

    Raises ValueError for an unknown name, FileNotFoundError where the package lacks one.
    """
    folder = builtin_model(name)
    names = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    files = [folder / file for file in names]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise FileNotFoundError(
            f"{folder} lacks {missing}; reinstall longrl, or make the folder again with "
            f"python -m slime_ext.embedded.lab.warm_start --out {folder}"
        )
    return files


def write_start(folder: Path, weights: Mapping[str, Tensor]) -> None:
    """Write config, weights (Hugging Face names, stored as float32) and tokenizer into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    stored = {name: tensor.detach().float().contiguous() for name, tensor in weights.items()}
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    save_tokenizer(folder, CONFIG["max_position_embeddings"])
