"""How many GPUs train and how many sample, as slime is told.

One design choice: the plan's layout is asked, so that a plan and a command line cannot disagree;
whether the layout can run is for `launch/plan/rules.py` to say, before flags are made of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.plan.layout import layout_of
from slime_ext.recipe.schema import Recipe


@dataclass(frozen=True, slots=True)
class GpuSplit:
    """GPUs by what they do; shared ones count on both sides."""

    train_nodes: int
    train_per_node: int
    rollout: int


def gpu_split(recipe: Recipe) -> GpuSplit:
    """Of a recipe whose layout keeps the rules."""
    layout = layout_of(recipe)
    per_node = min(layout.train_gpus, recipe.cluster.gpus_per_node)
    return GpuSplit(layout.train_gpus // per_node, per_node, layout.rollout_gpus)
