"""Memory of the trainer on one GPU, stage by stage.

One design choice: a stage peaks either in one layer's backward pass or, on the last stage, in its
log-probs; the two never meet, so the larger one counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.plan.activations import (
    checkpoints,
    gathered_keys_values,
    in_flight,
    kept_without_recompute,
    working_set,
)
from launch.plan.layout import Layout
from launch.plan.log_probs import LogProbMemory
from launch.plan.stage import stage_parameters
from launch.plan.tokens import MicroBatch
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.shape import ModelShape

BF16, FP32_GRADIENT, ADAM = 2, 4, 12
"""Bytes a parameter: weights, gradients, and the fp32 master copy with both moments."""


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Bytes on one GPU of a pipeline stage."""

    stage: int
    dense_parameters: int
    expert_parameters: int
    weights: float
    gradients: float
    optimiser: float
    activations: float
    """Kept between forward and backward: one input a layer under full recomputation."""
    micro_batches: int
    """Micro-batches under way, whose activations are kept."""
    working_set: float
    """One layer recomputed, with its gradients."""
    gathered_keys_values: float
    log_probs: float
    """Training pass; 0 on every stage but the last."""

    @property
    def static(self) -> float:
        return self.weights + self.gradients + self.optimiser

    @property
    def peak(self) -> float:
        moment = max(self.working_set + self.gathered_keys_values, self.log_probs)
        return self.static + self.activations + moment

    def terms(self) -> dict[str, float]:
        """The terms that add up to the peak, by name."""
        layer = self.working_set + self.gathered_keys_values
        moment = {"one layer's working set": layer}
        if self.log_probs > layer:
            moment = {"logits and log-probs": self.log_probs}
        return {
            "weights": self.weights,
            "gradients": self.gradients,
            "optimiser": self.optimiser,
            "activations": self.activations,
            **moment,
        }


def stage_memory(
    recipe: Recipe,
    shape: ModelShape,
    layout: Layout,
    batch: MicroBatch,
    log_probs: LogProbMemory,
    stage: int,
) -> StageMemory:
    """Memory of one stage (from 0); 6 + 12 / d bytes a parameter, d the ranks that share the
    optimiser's state, plus activations."""
    parameters = stage_parameters(shape, layout, stage)
    optimiser = ADAM * parameters.dense / layout.shards
    if parameters.expert:
        optimiser += ADAM * parameters.expert / layout.expert_shards
    working = working_set(shape, layout, batch)
    if recipe.performance.recompute == "full":
        kept: float = checkpoints(shape, layout, batch, stage)
    else:
        kept = kept_without_recompute(shape, layout, batch, stage)
        working /= 2
    return StageMemory(
        stage=stage,
        dense_parameters=parameters.dense,
        expert_parameters=parameters.expert,
        weights=BF16 * parameters.total,
        gradients=FP32_GRADIENT * parameters.total,
        optimiser=optimiser,
        activations=kept,
        micro_batches=in_flight(layout, batch, stage),
        working_set=working,
        gathered_keys_values=gathered_keys_values(shape, layout, batch),
        log_probs=log_probs.train if stage == layout.pp - 1 else 0.0,
    )


def all_stages(
    recipe: Recipe,
    shape: ModelShape,
    layout: Layout,
    batch: MicroBatch,
    log_probs: LogProbMemory,
) -> list[StageMemory]:
    """Memory of every stage, first to last."""
    return [
        stage_memory(recipe, shape, layout, batch, log_probs, stage) for stage in range(layout.pp)
    ]
