"""What is planned for the share that is measured: the plan's own formulas at the measured sizes.

One design choice: a scaled-down measurement is compared with the same functions that made the plan,
given fewer tokens and layers, so that a ratio says something of the formula and not of the scaling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from launch.plan.layout import Layout, layout_of
from launch.plan.log_probs import USUAL_CHUNK, log_prob_memory
from launch.plan.measure.share import MeasureError, Share
from launch.plan.rules import require_rules
from launch.plan.tokens import MicroBatch, largest_micro_batch
from launch.plan.trainer import StageMemory, stage_memory
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.count import padded_vocab_size
from slime_ext.weights.shape import ModelShape

StageName = Literal["first", "last"]

CPU_TOKENS, CPU_LAYERS = 2048, 2
"""Of a share that is measured on CPU: half a minute on two cores, and terms of tens of MiB."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A share, the plan's terms for it, and the terms of the recipe at full size; bytes."""

    stage: int
    share: Share
    terms: dict[str, float]
    full: dict[str, float]
    full_tokens: int
    full_layers: int


def planned(
    recipe: Recipe,
    shape: ModelShape,
    stage: StageName | None,
    tokens: int | None,
    layers: int | None,
) -> Planned:
    """The share of one GPU in `stage` (None: the one with the higher peak).

    `tokens` on this GPU and at most `layers` layers; None takes the recipe's. Raises LayoutError
    where the layout breaks a rule, MeasureError where the share cannot be built.
    """
    require_rules(recipe, shape)
    if shape.hybrid:
        raise MeasureError(
            "--measure builds no gated-delta-net layers, which slime takes from a plugin of its "
            "own; `longrl plan` without it estimates them"
        )
    layout = layout_of(recipe)
    whole = largest_micro_batch(recipe, layout)
    ends: dict[StageName, int] = {"first": 0, "last": layout.pp - 1}
    peaks = {at: _memory(recipe, shape, layout, whole, at).peak for at in ends.values()}
    index = ends[stage] if stage else max(ends.values(), key=peaks.__getitem__)

    per_stage = shape.num_layers // layout.pp
    kept = min(layers or per_stage, per_stage)
    small = replace(shape, num_layers=kept * layout.pp)
    batch = whole if tokens is None else _scaled(whole, layout, tokens)
    scale = batch.local / whole.local
    return Planned(
        stage=index,
        share=_share(recipe, small, layout, batch, index, scale),
        terms=_terms(recipe, small, layout, batch, index, scale),
        full=_terms(recipe, shape, layout, whole, index, 1.0),
        full_tokens=whole.local,
        full_layers=per_stage,
    )


def _memory(
    recipe: Recipe, shape: ModelShape, layout: Layout, batch: MicroBatch, stage: int
) -> StageMemory:
    log_probs = log_prob_memory(recipe, shape, layout, batch)
    return stage_memory(recipe, shape, layout, batch, log_probs, stage)


def _terms(
    recipe: Recipe,
    shape: ModelShape,
    layout: Layout,
    batch: MicroBatch,
    stage: int,
    scale: float,
) -> dict[str, float]:
    """Planned bytes by the names of the measured terms; log-probs in chunks and not."""
    rows = _chunk(recipe, scale)
    if recipe.performance.log_prob_chunk is not None:
        recipe = _with_chunk(recipe, rows)
    memory = _memory(recipe, shape, layout, batch, stage)
    terms = {
        "weights": memory.weights,
        "gradients": memory.gradients,
        "optimiser": memory.optimiser,
        "checkpoints": memory.activations,
        "layer": memory.working_set + memory.gathered_keys_values,
    }
    if stage == layout.pp - 1:
        cut = _with_chunk(recipe, rows)
        log_probs = log_prob_memory(cut, shape, layout, batch)
        terms |= {
            "log_prob_train_unchunked": log_probs.train_whole,
            "log_prob_train_chunked": log_probs.train_chunked,
            "log_prob_no_grad_unchunked": log_probs.no_grad_whole,
            "log_prob_no_grad_chunked": max(log_probs.no_grad_chunked, log_probs.conversion),
        }
    return terms | {"peak": memory.peak}


def _scaled(batch: MicroBatch, layout: Layout, tokens: int) -> MicroBatch:
    cut = layout.tp if layout.sequence_parallel else 1
    unit = 2 * cut
    if tokens < unit or tokens % unit:
        raise MeasureError(
            f"{tokens} tokens on a GPU cannot be cut into two pieces and over {cut} "
            f"sequence-parallel ranks; write --tokens {max(unit, tokens // unit * unit)}"
        )
    return MicroBatch(
        whole=tokens * layout.cp,
        local=tokens,
        shard=tokens // cut,
        response_rows=max(1, batch.response_rows * tokens // batch.local),
        count=batch.count,
    )


def _chunk(recipe: Recipe, scale: float) -> int:
    """Rows of a chunk such that there are as many chunks at `scale` times the tokens."""
    return max(1, round((recipe.performance.log_prob_chunk or USUAL_CHUNK) * min(1.0, scale)))


def _with_chunk(recipe: Recipe, rows: int) -> Recipe:
    section = recipe.performance.model_copy(update={"log_prob_chunk": rows})
    return recipe.model_copy(update={"performance": section})


def _share(
    recipe: Recipe,
    shape: ModelShape,
    layout: Layout,
    batch: MicroBatch,
    stage: int,
    scale: float,
) -> Share:
    performance, moe, tp = recipe.performance, shape.moe, layout.tp
    older = recipe.slime.version == "v0.2.4"
    return Share(
        layers=shape.num_layers // layout.pp,
        hidden=shape.hidden_size,
        heads=shape.num_heads // tp,
        kv_heads=shape.num_kv_heads // tp,
        head_dim=shape.head_dim,
        ffn=0 if moe else shape.ffn_size // tp,
        vocab=padded_vocab_size(shape, tp) // tp,
        tokens=batch.local,
        tp=tp,
        cp=layout.cp,
        shards=layout.shards,
        has_embedding=stage == 0,
        has_head=stage == layout.pp - 1,
        tied=shape.tied_embeddings,
        qk_norm=shape.qk_norm,
        qkv_bias=shape.qkv_bias,
        sequence_parallel=layout.sequence_parallel,
        recompute=performance.recompute == "full",
        in_flight=min(layout.pp - stage, batch.count),
        log_prob_chunk=_chunk(recipe, scale),
        chunked=performance.log_prob_chunk is not None,
        temperature=recipe.rollout.temperature,
        response_rows=batch.response_rows if older else None,
        experts=moe.num_experts // layout.ep if moe else 0,
        all_experts=moe.num_experts if moe else 0,
        top_k=moe.top_k if moe else 0,
        etp=layout.etp,
        expert_ffn=moe.ffn_size // layout.etp if moe else 0,
        expert_shards=layout.expert_shards,
    )
