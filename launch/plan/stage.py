"""Parameters of one pipeline stage on one GPU.

One design choice: experts are counted apart from the rest, because another group cuts their
optimiser state.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.plan.layout import Layout
from slime_ext.weights.count import count_parameters, padded_vocab_size
from slime_ext.weights.shape import ModelShape


@dataclass(frozen=True, slots=True)
class StageParameters:
    """Parameters that one GPU of a stage holds."""

    dense: int
    expert: int

    @property
    def total(self) -> int:
        return self.dense + self.expert


def stage_parameters(shape: ModelShape, layout: Layout, stage: int) -> StageParameters:
    """Parameters on one GPU of pipeline stage `stage` (from 0).

    The first stage holds the embedding and the last the head, each with the vocabulary padded; both
    hold a copy of a tied one, unless they are one stage. Norms, routers and (slime runs them whole
    on every rank) gated-delta-net layers are not cut by tensor parallel.
    """
    counts = count_parameters(shape)
    tp = layout.tp
    per_stage = shape.num_layers // layout.pp
    mine = range(stage * per_stage, (stage + 1) * per_stage)
    full = shape.hybrid.full_attention_layers if shape.hybrid else range(shape.num_layers)
    norms = 2 * shape.head_dim if shape.qk_norm else 0
    attention = (counts.layer_attention - norms) // tp + norms
    mlp = counts.layer_mlp if shape.moe else counts.layer_mlp // tp
    dense = 0
    for layer in mine:
        mixer = attention if layer in full else counts.layer_linear_attention
        dense += mixer + mlp + counts.layer_norms
    vocabulary = padded_vocab_size(shape, tp) * shape.hidden_size // tp
    first, last = stage == 0, stage == layout.pp - 1
    if first:
        dense += vocabulary
    if last:
        dense += counts.final_norm
        dense += 0 if shape.tied_embeddings and first else vocabulary
    return StageParameters(dense, per_stage * counts.layer_experts // (layout.ep * layout.etp))
