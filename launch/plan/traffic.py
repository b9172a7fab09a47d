"""Bytes that the parallel groups exchange for one token and layer, forward.

One design choice: counted for a token over all GPUs that work on it, which makes layouts of one
cluster comparable whatever their data parallel size. Backward and recomputation repeat it in the
same proportions.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.plan.layout import Layout
from slime_ext.weights.shape import ModelShape

BF16 = 2


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes a token and layer."""

    total: float
    between_nodes: float
    """Of groups that do not fit into one node."""


def traffic(shape: ModelShape, layout: Layout, gpus_per_node: int) -> Traffic:
    """Tensor parallel gathers and scatters the hidden state twice each; context parallel gathers
    keys and values; experts receive and return `top_k` copies; a pipeline sends the hidden state
    once a stage. Ranks lie in the order TP, CP, DP, PP (experts: ETP, EP)."""
    hidden = BF16 * shape.hidden_size
    keys_values = BF16 * 2 * shape.num_kv_heads * shape.head_dim
    tensor = 4 * (layout.tp - 1) * hidden
    context = (layout.cp - 1) * keys_values
    pipeline = (layout.pp - 1) * hidden / shape.num_layers
    top_k = shape.moe.top_k if shape.moe else 0
    experts = 2 * top_k * hidden * (layout.ep - 1) / layout.ep
    groups = [
        (tensor, layout.tp),
        (context, layout.tp * layout.cp),
        (experts, layout.ep * layout.etp),
        (pipeline, layout.train_gpus),
    ]
    return Traffic(
        total=sum(sent for sent, _ in groups),
        between_nodes=sum(sent for sent, span in groups if span > gpus_per_node),
    )
