"""Reads a Hugging Face folder's safetensors into the layout the engine computes with.

One design choice: everything that can be settled at load is settled here (query, key and value in
one matrix, gate and up in one, the attention scale in the query's weights, heads in pair order), as
a decode step of a small model is bound by the number of torch calls, not by arithmetic.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import safe_open

from slime_ext.embedded.engine.rope import pair_order
from slime_ext.weights.shape import ModelShape


@dataclass(slots=True)
class LayerWeights:
    """One decoder layer, float32; H = heads, K = key/value heads, D = head_dim."""

    input_norm: torch.Tensor
    qkv: torch.Tensor
    """[(H + 2K) D, hidden]; query rows carry the factor D^-0.5 where there is no query norm."""
    qk_norm: torch.Tensor | None
    """[H + K, D], query rows times D^-0.5; None without QK norm."""
    out: torch.Tensor
    post_norm: torch.Tensor
    gate_up: torch.Tensor
    """[2 ffn, hidden], gate first."""
    down: torch.Tensor


@dataclass(slots=True)
class Weights:
    """A whole decoder; `head` is `embedding` itself where embeddings are tied."""

    embedding: torch.Tensor
    layers: list[LayerWeights]
    norm: torch.Tensor
    head: torch.Tensor


def load_weights(folder: Path, shape: ModelShape) -> Weights:
    """The weights in `folder`, copied to float32 (the files may be replaced afterwards).

    Raises FileNotFoundError without safetensors, ValueError for a missing tensor or a wrong shape.
    """
    tensors = _Tensors(folder)
    vocab, hidden = shape.vocab_size, shape.hidden_size
    embedding = tensors.take("model.embed_tokens.weight", (vocab, hidden))
    head = embedding
    if not shape.tied_embeddings:
        head = tensors.take("lm_head.weight", (vocab, hidden))
    return Weights(
        embedding=embedding,
        layers=[_layer(tensors, shape, f"model.layers.{i}.") for i in range(shape.num_layers)],
        norm=tensors.take("model.norm.weight", (hidden,)),
        head=head,
    )


def _layer(tensors: _Tensors, shape: ModelShape, prefix: str) -> LayerWeights:
    hidden, ffn, dim = shape.hidden_size, shape.ffn_size, shape.head_dim
    heads, kv_heads, scale = shape.num_heads, shape.num_kv_heads, shape.head_dim**-0.5
    order = pair_order(dim)

    def projection(name: str, count: int) -> torch.Tensor:
        return tensors.take(f"{prefix}self_attn.{name}.weight", (count * dim, hidden))

    def paired(matrix: torch.Tensor) -> torch.Tensor:
        return matrix.view(-1, dim, hidden)[:, order].reshape(-1, hidden)

    query, key = paired(projection("q_proj", heads)), paired(projection("k_proj", kv_heads))
    qk_norm = None
    if shape.qk_norm:
        q_norm = tensors.take(f"{prefix}self_attn.q_norm.weight", (dim,))[order] * scale
        k_norm = tensors.take(f"{prefix}self_attn.k_norm.weight", (dim,))[order]
        qk_norm = torch.cat([q_norm.expand(heads, dim), k_norm.expand(kv_heads, dim)])
    else:
        query = query * scale
    return LayerWeights(
        input_norm=tensors.take(f"{prefix}input_layernorm.weight", (hidden,)),
        qkv=torch.cat([query, key, projection("v_proj", kv_heads)]),
        qk_norm=qk_norm,
        out=tensors.take(f"{prefix}self_attn.o_proj.weight", (hidden, heads * dim)),
        post_norm=tensors.take(f"{prefix}post_attention_layernorm.weight", (hidden,)),
        gate_up=torch.cat(
            [tensors.take(f"{prefix}mlp.{name}.weight", (ffn, hidden)) for name in _GATE_UP]
        ),
        down=tensors.take(f"{prefix}mlp.down_proj.weight", (hidden, ffn)),
    )


_GATE_UP = ("gate_proj", "up_proj")


class _Tensors:
    """Named tensors of a folder, one file or many with an index."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        index = folder / "model.safetensors.index.json"
        if index.is_file():
            names = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        else:
            names = ["model.safetensors"]
        self._file_of: dict[str, Path] = {}
        for name in names:
            path = folder / name
            if not path.is_file():
                raise FileNotFoundError(f"{path} is missing; name a Hugging Face model folder")
            with safe_open(path, framework="pt") as file:
                self._file_of.update(dict.fromkeys(file.keys(), path))

    def take(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        if name not in self._file_of:
            raise ValueError(f"{self._folder}: no tensor {name!r}, which its config.json calls for")
        with safe_open(self._file_of[name], framework="pt") as file:
            tensor: torch.Tensor = file.get_tensor(name)
        if tuple(tensor.shape) != shape:
            raise ValueError(
                f"{self._folder}: {name} has shape {list(tensor.shape)}, "
                f"its config.json calls for {list(shape)}"
            )
        return tensor.to(torch.float32, copy=True)
