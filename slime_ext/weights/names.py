"""The one table of a model's tensor names: Hugging Face <-> Megatron.

One design choice: a row names one Megatron tensor and the Hugging Face tensors it is made of;
loading, export, import and weight updates all walk the same rows, so they cannot disagree. The
Megatron side carries the names of a live local-spec model; `NamedRow.stored` gives the places where
a torch_dist file may keep the same tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from slime_ext.weights.fuse import join_gate_up, join_qkv, split_gate_up, split_qkv
from slime_ext.weights.shape import ModelShape
from slime_ext.weights.table import Part, Row, layer_table, sizes

if TYPE_CHECKING:
    from torch import Tensor

EMBEDDING = "embedding.word_embeddings.weight"
OUTPUT_LAYER = "output_layer.weight"
HF_EMBEDDING = "model.embed_tokens.weight"
HF_LM_HEAD = "lm_head.weight"
_LAYERS = "decoder.layers."

_EMBEDDING = Row(EMBEDDING, (Part(HF_EMBEDDING, ("vocab", "hidden")),))
_FINAL_NORM = Row("decoder.final_layernorm.weight", (Part("model.norm.weight", ("hidden",)),))
_HEAD = Row(OUTPUT_LAYER, (Part(HF_LM_HEAD, ("vocab", "hidden")),))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a torch_dist file may hold a tensor: below indices into the first axes of a key."""

    key: str
    lead: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    """Lengths of those axes."""


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A row of the table in its place in a model: full names on both sides."""

    row: Row
    megatron: str
    hf: tuple[str, ...]
    layer: int | None = None
    expert: int | None = None

    def stored(self, shape: ModelShape) -> Iterator[Place]:
        """Every place where a torch_dist file may hold the tensor, the usual one first.

        Megatron stacks the layers, and the experts, of a model in one tensor where all layers are
        of one kind; otherwise keys carry the numbers.
        """
        if self.layer is None:
            yield Place(self.megatron)
            return
        for name in (*self.row.stored, self.row.megatron):
            lead: tuple[int, ...] = ()
            lengths: tuple[int, ...] = ()
            if self.expert is not None and shape.moe and "{expert}" not in name:
                lead, lengths = (self.expert,), (shape.moe.num_experts,)
            name = name.format(expert=self.expert)
            yield Place(_LAYERS + name, (self.layer, *lead), (shape.num_layers, *lengths))
            yield Place(f"{_LAYERS}{self.layer}.{name}", lead, lengths)


def rows(shape: ModelShape) -> Iterator[NamedRow]:
    """Every row of a model, layers in order. Raises UnknownFamilyError for one without a table."""
    table = layer_table(shape.architecture)
    yield NamedRow(_EMBEDDING, EMBEDDING, (HF_EMBEDDING,))
    for layer in range(shape.num_layers):
        for row in table:
            yield from _named(row, layer, shape)
    yield NamedRow(_FINAL_NORM, _FINAL_NORM.megatron, (_FINAL_NORM.parts[0].name,))
    if not shape.tied_embeddings:
        yield NamedRow(_HEAD, OUTPUT_LAYER, (HF_LM_HEAD,))


def expected_tensors(shape: ModelShape) -> dict[str, tuple[int, ...]]:
    """Every Hugging Face tensor of the model, with its shape; a tied head is not one of them."""
    length = sizes(shape)
    return {
        name: tuple(length[axis] for axis in part.axes)
        for named in rows(shape)
        for name, part in zip(named.hf, named.row.parts, strict=True)
    }


def megatron_shapes(shape: ModelShape) -> dict[str, tuple[int, ...]]:
    """Every live Megatron tensor of the model, unsharded, with its shape."""
    parts = expected_tensors(shape)
    result: dict[str, tuple[int, ...]] = {}
    for named in rows(shape):
        first = parts[named.hf[0]]
        result[named.megatron] = (sum(parts[name][0] for name in named.hf), *first[1:])
    return result


def hf_to_megatron(state: Mapping[str, Tensor], shape: ModelShape) -> dict[str, Tensor]:
    """The Megatron tensors of a Hugging Face state; single-tensor rows share its memory.

    A tied model may carry `lm_head.weight` as a copy of the embedding, which is dropped. Raises
    ValueError naming every missing, unexpected or wrongly shaped tensor.
    """
    state = _without_tied_head(state, shape)
    _check(state, expected_tensors(shape))
    return {
        named.megatron: _join(named.row, [state[name] for name in named.hf], shape)
        for named in rows(shape)
    }


def megatron_to_hf(state: Mapping[str, Tensor], shape: ModelShape) -> dict[str, Tensor]:
    """The Hugging Face tensors of a full (unsharded) Megatron state; the inverse, bit for bit.

    Raises ValueError naming every missing, unexpected or wrongly shaped tensor.
    """
    _check(state, megatron_shapes(shape))
    result: dict[str, Tensor] = {}
    for named in rows(shape):
        parts = _split(named.row, state[named.megatron], shape)
        result.update(zip(named.hf, parts, strict=True))
    return result


def _named(row: Row, layer: int, shape: ModelShape) -> Iterator[NamedRow]:
    """The row in one layer: once, or once for each expert."""
    per_expert = "{expert}" in row.megatron
    for expert in range(shape.moe.num_experts if shape.moe else 0) if per_expert else (None,):
        yield NamedRow(
            row,
            f"{_LAYERS}{layer}.{row.megatron.format(expert=expert)}",
            tuple(f"model.layers.{layer}.{part.name.format(expert=expert)}" for part in row.parts),
            layer,
            expert,
        )


def _join(row: Row, parts: list[Tensor], shape: ModelShape) -> Tensor:
    if row.layout == "qkv":
        return join_qkv(parts[0], parts[1], parts[2], shape.num_kv_heads)
    if row.layout == "gate_up":
        return join_gate_up(parts[0], parts[1])
    return parts[0]


def _split(row: Row, tensor: Tensor, shape: ModelShape) -> tuple[Tensor, ...]:
    if row.layout == "qkv":
        return split_qkv(tensor, shape.num_heads, shape.num_kv_heads)
    if row.layout == "gate_up":
        return split_gate_up(tensor)
    return (tensor,)


def _without_tied_head(state: Mapping[str, Tensor], shape: ModelShape) -> Mapping[str, Tensor]:
    if not shape.tied_embeddings or HF_LM_HEAD not in state:
        return state
    import torch

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
