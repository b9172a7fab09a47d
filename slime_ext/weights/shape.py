"""The shape of a decoder as its Hugging Face config states it.

One design choice: one small record, read from `config.json` without transformers, is shared by the
engine, the trainer and export, so the three cannot disagree about a head count or a rope base.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Architecture = Literal["qwen3", "llama"]

_ARCHITECTURES: dict[str, Architecture] = {"Qwen3ForCausalLM": "qwen3", "LlamaForCausalLM": "llama"}


@dataclass(frozen=True, slots=True)
class Llama3Rope:
    """Llama 3.1's frequency scaling (`rope_type = "llama3"`)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of one dense decoder; `qk_norm` is RMSNorm on each query and key head (Qwen3)."""

    architecture: Architecture
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    ffn_size: int
    vocab_size: int
    rms_norm_eps: float
    rope_theta: float
    rope_scaling: Llama3Rope | None
    tied_embeddings: bool
    max_position_embeddings: int

    @property
    def qk_norm(self) -> bool:
        return self.architecture == "qwen3"


def read_shape(folder: Path) -> ModelShape:
    """The shape stated by `folder/config.json`.

    Raises ValueError for an architecture or a rope scaling that is not supported, FileNotFoundError
    where there is no config.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} holds no config.json; name a Hugging Face model folder")
    return shape_from_config(json.loads(path.read_text()), where=str(path))


def shape_from_config(config: dict[str, Any], where: str = "config") -> ModelShape:
    """The shape of a parsed Hugging Face config; `where` names it in errors."""
    names = config.get("architectures") or []
    known = [name for name in names if name in _ARCHITECTURES]
    if not known:
        raise ValueError(
            f"{where}: architectures = {names} is not supported; known: {sorted(_ARCHITECTURES)}"
        )
    if config.get("attention_bias"):
        raise ValueError(f"{where}: attention_bias = true is not supported")
    theta, scaling = _rope(config, where)
    heads = int(config["num_attention_heads"])
    return ModelShape(
        architecture=_ARCHITECTURES[known[0]],
        num_layers=int(config["num_hidden_layers"]),
        hidden_size=int(config["hidden_size"]),
        num_heads=heads,
        num_kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or config["hidden_size"] // heads),
        ffn_size=int(config["intermediate_size"]),
        vocab_size=int(config["vocab_size"]),
        rms_norm_eps=float(config["rms_norm_eps"]),
        rope_theta=theta,
        rope_scaling=scaling,
        tied_embeddings=bool(config.get("tie_word_embeddings", False)),
        max_position_embeddings=int(config["max_position_embeddings"]),
    )


def _rope(config: dict[str, Any], where: str) -> tuple[float, Llama3Rope | None]:
    """Rope base and scaling; transformers 5 writes `rope_parameters`, 4 `rope_theta` beside
    `rope_scaling`, and a reader of only one of them falls back to 10,000 in silence."""
    parameters = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    theta = parameters.get("rope_theta", config.get("rope_theta"))
    if theta is None:
        raise ValueError(f"{where}: neither rope_theta nor rope_parameters.rope_theta is given")
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    if kind == "default":
        return float(theta), None
    if kind == "llama3":
        return float(theta), Llama3Rope(
            factor=float(parameters["factor"]),
            low_freq_factor=float(parameters["low_freq_factor"]),
            high_freq_factor=float(parameters["high_freq_factor"]),
            original_max_position_embeddings=int(parameters["original_max_position_embeddings"]),
        )
    raise ValueError(f"{where}: rope_type = {kind!r} is not supported; known: default, llama3")
