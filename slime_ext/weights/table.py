"""The words in which a family's table is written: rows, parts, and the axes of a tensor.

One design choice: a table is data. An axis is named, not computed, so a family's file can be read
against its paper; names with `{expert}` stand for one tensor of every expert.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Literal

from slime_ext.errors import ExplainedError
from slime_ext.weights.shape import Architecture, ModelShape

Axis = Literal["vocab", "hidden", "query", "key", "head", "ffn", "experts", "expert_ffn"]
Layout = Literal["whole", "qkv", "gate_up"]
"""How the parts of a row lie in the Megatron tensor: one part; for each key-value head its query
heads, its key and its value; the gate's rows above the up projection's."""


@dataclass(frozen=True, slots=True)
class Part:
    """One Hugging Face tensor: its name within a layer and its axes, rows first."""

    name: str
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One Megatron tensor and the Hugging Face tensors it holds."""

    megatron: str
    """Name in a live local-spec model, which holds every expert of the model."""
    parts: tuple[Part, ...]
    layout: Layout = "whole"
    stored: tuple[str, ...] = ()
    """Other names of the tensor in torch_dist files, the usual one first. Of a name without
    `{expert}` in a row that has it, the file stacks all experts in one tensor."""


class UnknownFamilyError(ExplainedError, ValueError):
    """A model whose tensors have no table."""


def layer_table(architecture: Architecture) -> tuple[Row, ...]:
    """The rows of one layer, from `families/ARCHITECTURE.py`. Raises UnknownFamilyError."""
    module = f"slime_ext.weights.families.{architecture}"
    try:
        table: tuple[Row, ...] = importlib.import_module(module).LAYER
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise UnknownFamilyError(
            f"models of kind {architecture!r} have no table of tensors here; slime's own converter "
            "(tools/convert_torch_dist_to_hf.py) knows them"
        ) from None
    return table


def sizes(shape: ModelShape) -> dict[Axis, int]:
    """The length of every axis of a model of this shape."""
    return {
        "vocab": shape.vocab_size,
        "hidden": shape.hidden_size,
        "query": shape.num_heads * shape.head_dim,
        "key": shape.num_kv_heads * shape.head_dim,
        "head": shape.head_dim,
        "ffn": shape.ffn_size,
        "experts": shape.moe.num_experts if shape.moe else 0,
        "expert_ffn": shape.moe.ffn_size if shape.moe else 0,
    }


def row_ranges(row: Row, part: int, shape: ModelShape) -> list[tuple[int, int]]:
    """Which rows [start, end) of the Megatron tensor make up `row.parts[part]`, in order."""
    lengths = [sizes(shape)[one.axes[0]] for one in row.parts]
    groups = shape.num_kv_heads if row.layout == "qkv" else 1
    length = lengths[part] // groups
    starts = range(sum(lengths[:part]) // groups, sum(lengths), sum(lengths) // groups)
    return [(start, start + length) for start in starts]
