"""Activations of a stage: what is kept between passes, and one layer at work.

One design choice: terms follow Korthikanti et al. (2205.05198, table 2), written out for full
recomputation with flash attention, where nothing is quadratic in the sequence. They are estimates;
`longrl plan --measure` compares them with a run.
"""

from __future__ import annotations

from launch.plan.layout import Layout
from launch.plan.tokens import MicroBatch
from slime_ext.weights.shape import HybridShape, ModelShape

CHUNK = 64
"""Tokens between two states that the gated-delta-net kernel keeps."""


def checkpoints(shape: ModelShape, layout: Layout, batch: MicroBatch, stage: int) -> int:
    """Bytes of one bf16 input a layer, for every micro-batch under way in this stage (1F1B)."""
    layers = shape.num_layers // layout.pp
    return layers * batch.shard * shape.hidden_size * 2 * in_flight(layout, batch, stage)


def in_flight(layout: Layout, batch: MicroBatch, stage: int) -> int:
    """Micro-batches whose backward pass stage `stage` still waits for."""
    return min(layout.pp - stage, batch.count)


def working_set(shape: ModelShape, layout: Layout, batch: MicroBatch) -> float:
    """Bytes of one layer recomputed in the backward pass, with its gradients (x 2)."""
    layer = _attention(shape, layout, batch) + _feed_forward(shape, layout, batch)
    if shape.hybrid:
        linear = _gated_delta_net(shape, shape.hybrid, batch) + _feed_forward(shape, layout, batch)
        layer = max(layer, linear)
    gathered = 4 * batch.local * shape.hidden_size
    return 2 * (layer + gathered)


def gathered_keys_values(shape: ModelShape, layout: Layout, batch: MicroBatch) -> float:
    """Bytes of keys and values of the whole sequence, gathered over context parallel ranks."""
    if layout.cp == 1:
        return 0.0
    return 4 * batch.whole * shape.num_kv_heads * shape.head_dim / layout.tp


def kept_without_recompute(
    shape: ModelShape, layout: Layout, batch: MicroBatch, stage: int
) -> float:
    """Bytes kept where nothing is recomputed; rough, since fused kernels keep fewer tensors."""
    layers = shape.num_layers // layout.pp
    one = working_set(shape, layout, batch) / 2
    return layers * one * in_flight(layout, batch, stage)


def _attention(shape: ModelShape, layout: Layout, batch: MicroBatch) -> float:
    """Norm inputs and outputs, three forms of q, k, v (projected, normed, rotated), the output."""
    queries = shape.num_heads * shape.head_dim
    keys = shape.num_kv_heads * shape.head_dim
    gate = queries if shape.hybrid and shape.hybrid.output_gate else 0
    hidden = 4 * shape.hidden_size * batch.shard / batch.local
    projected = (3 * (queries + gate + 2 * keys) + queries) / layout.tp
    return 2 * batch.local * (hidden + projected)


def _feed_forward(shape: ModelShape, layout: Layout, batch: MicroBatch) -> float:
    """Gate, up and their product; for experts, of the `top_k` copies of each token, balanced."""
    if shape.moe is None:
        return 2 * batch.local * 3 * shape.ffn_size / layout.tp
    copy = 3 * shape.moe.ffn_size + 2 * shape.hidden_size * layout.etp
    return 2.0 * batch.shard * shape.moe.top_k * copy


def _gated_delta_net(shape: ModelShape, hybrid: HybridShape, batch: MicroBatch) -> float:
    """slime gathers the whole sequence and runs the layer on every rank of TP and CP: projections
    and convolution, repeated q and k, v, z, output and normed output, and a state every 64 tokens.
    """
    keys = hybrid.key_heads * hybrid.key_head_dim
    values = hybrid.value_heads * hybrid.value_head_dim
    repeated = 2 * hybrid.value_heads * hybrid.key_head_dim
    states = hybrid.value_heads * hybrid.key_head_dim * hybrid.value_head_dim / CHUNK
    width = 2 * shape.hidden_size + 2 * (2 * keys + values) + repeated + 4 * values + states
    return 2 * batch.whole * width
