"""Parameter counts of a decoder, part by part.

One design choice: parts, not a total, because pipeline stages hold different parts and each form of
parallelism divides different ones; the total is their sum, so it cannot say something else.
"""

from __future__ import annotations

from dataclasses import dataclass

from slime_ext.weights.shape import HybridShape, ModelShape

VOCAB_MULTIPLE = 128
"""Megatron's default of --make-vocab-size-divisible-by."""


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """Parameters of a whole model; fields named `layer_` count one layer."""

    embedding: int
    head: int
    """0 where the head is the embedding."""
    final_norm: int
    layer_attention: int
    """Projections, biases and query/key norms of a full-attention layer."""
    layer_linear_attention: int
    """The same of a gated-delta-net layer; 0 where the model has none."""
    layer_norms: int
    """The two norms over the hidden state."""
    layer_mlp: int
    """The dense feed-forward, or the router of the experts."""
    layer_experts: int
    """All experts of a layer; 0 in a dense model."""
    layers: tuple[int, ...]
    """Each layer, first to last."""

    @property
    def total(self) -> int:
        """All of it, the vocabulary as the config states it (not padded)."""
        return self.embedding + self.head + self.final_norm + sum(self.layers)


def count_parameters(shape: ModelShape) -> ParameterCounts:
    """The parameters of a model of this shape, without a vision tower or prediction heads."""
    hidden = shape.hidden_size
    vocabulary = shape.vocab_size * hidden
    attention = _attention(shape)
    linear = _gated_delta_net(hidden, shape.hybrid) if shape.hybrid else 0
    experts = 0
    if shape.moe:
        mlp = hidden * shape.moe.num_experts
        experts = shape.moe.num_experts * 3 * hidden * shape.moe.ffn_size
    else:
        mlp = 3 * hidden * shape.ffn_size
    rest = 2 * hidden + mlp + experts
    full = shape.hybrid.full_attention_layers if shape.hybrid else range(shape.num_layers)
    return ParameterCounts(
        embedding=vocabulary,
        head=0 if shape.tied_embeddings else vocabulary,
        final_norm=hidden,
        layer_attention=attention,
        layer_linear_attention=linear,
        layer_norms=2 * hidden,
        layer_mlp=mlp,
        layer_experts=experts,
        layers=tuple(
            rest + (attention if index in full else linear) for index in range(shape.num_layers)
        ),
    )


def padded_vocab_size(shape: ModelShape, tp: int) -> int:
    """Rows of Megatron's embedding and head, all tensor parallel ranks together: the vocabulary
    rounded up to a multiple of 128 x tp."""
    multiple = VOCAB_MULTIPLE * tp
    return -(-shape.vocab_size // multiple) * multiple


def _attention(shape: ModelShape) -> int:
    """Query (doubled by an output gate), key, value and output projections, with bias and norms."""
    queries = shape.num_heads * shape.head_dim
    keys = shape.num_kv_heads * shape.head_dim
    gate = queries if shape.hybrid and shape.hybrid.output_gate else 0
    weights = shape.hidden_size * (queries + gate + 2 * keys + queries)
    bias = queries + 2 * keys if shape.qkv_bias else 0
    norms = 2 * shape.head_dim if shape.qk_norm else 0
    return weights + bias + norms


def _gated_delta_net(hidden: int, hybrid: HybridShape) -> int:
    """Projections to queries, keys, values, gate z and the two scalars of a value head (a, b); the
    convolution over q, k, v; time step bias and decay of a head; the gated norm; the output."""
    keys = hybrid.key_heads * hybrid.key_head_dim
    values = hybrid.value_heads * hybrid.value_head_dim
    mixed = 2 * keys + values
    projections = hidden * (mixed + values + 2 * hybrid.value_heads) + values * hidden
    return projections + mixed * hybrid.conv_kernel + 2 * hybrid.value_heads + hybrid.value_head_dim
