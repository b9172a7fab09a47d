"""Host memory of one node and disk of a run.

One design choice: the fullest stage is taken for every GPU of a node, because the scheduler decides
which ranks share one.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.plan.layout import Layout
from launch.plan.tokens import cdiv
from launch.plan.trainer import StageMemory
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.count import count_parameters
from slime_ext.weights.shape import ModelShape

SAVED_WITH_OPTIMISER, SAVED_WEIGHTS = 14, 2
"""Bytes a parameter: bf16 weights, and the fp32 master copy with both moments."""


@dataclass(frozen=True, slots=True)
class HostMemory:
    """Bytes on one node."""

    weight_copies: float
    """Pinned copies that slime keeps of the policy, and of the reference where there is one."""
    offloaded: float
    """What leaves the GPUs while responses are generated; 0 without offloading."""
    saving: float
    """A node's share of a checkpoint, copied to host memory before it is written."""

    @property
    def total(self) -> float:
        return self.weight_copies + self.offloaded + self.saving


@dataclass(frozen=True, slots=True)
class Disk:
    """Bytes on the shared file system."""

    save: float
    """One checkpoint with optimiser state."""
    weights: float
    """The weights alone, as exported for `transformers`."""
    saves: int
    """Checkpoints a whole run writes."""
    kept: int
    """Checkpoints that stay (`checkpoint.keep`)."""
    best: bool
    """Whether the weights of the best one stay (`checkpoint.keep_best`)."""

    @property
    def peak(self) -> float:
        """Kept checkpoints, the one being written, one export; the best, and its successor until
        that is whole."""
        copies = 3 if self.best else 1
        return min(self.saves, self.kept + 1) * self.save + copies * self.weights


def host_memory(recipe: Recipe, layout: Layout, stages: list[StageMemory]) -> HostMemory:
    """v0.3.1 offloads the optimiser only (weights have their copy, gradients are dropped); v0.2.4
    copies everything."""
    fullest = max(stages, key=lambda stage: stage.static)
    gpus = min(recipe.cluster.gpus_per_node, layout.train_gpus)
    offloaded = 0.0
    if recipe.cluster.colocate and recipe.performance.offload:
        older = recipe.slime.version == "v0.2.4"
        offloaded = fullest.static if older else fullest.optimiser
    copies = 2 if recipe.loss.kl_coef > 0 else 1
    share = fullest.weights / layout.shards + fullest.optimiser
    return HostMemory(
        weight_copies=gpus * copies * fullest.weights,
        offloaded=gpus * offloaded,
        saving=gpus * share,
    )


def disk(recipe: Recipe, shape: ModelShape) -> Disk:
    """Disk of a whole run."""
    parameters = count_parameters(shape).total
    return Disk(
        save=SAVED_WITH_OPTIMISER * parameters,
        weights=SAVED_WEIGHTS * parameters,
        saves=cdiv(recipe.rollout.steps, recipe.checkpoint.every),
        kept=recipe.checkpoint.keep,
        best=recipe.checkpoint.keep_best and bool(recipe.data.eval or recipe.data.eval_sets),
    )
