"""What to change so that a plan fits.

One design choice: a remedy is a command line that was itself planned and fits, not advice.
"""

from __future__ import annotations

from launch.plan.engine import GIB
from launch.plan.plan import Plan, make_plan
from launch.plan.search import smallest_change
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.shape import ModelShape

MORE = (2, 4, 8)
"""Times the nodes, where no layout of the stated ones fits."""


def remedies(recipe: Recipe, shape: ModelShape, plan: Plan) -> list[str]:
    """Sentences with `--set` arguments that make the plan fit; empty where it fits already."""
    if plan.verdict != "does not fit":
        return []
    return _settings(recipe, shape) or _layout(recipe, shape) or _more_nodes(recipe, shape)


def _settings(recipe: Recipe, shape: ModelShape) -> list[str]:
    """Single settings that cost no GPUs."""
    found = []
    tries = {
        'performance.recompute="full"': ("performance", {"recompute": "full"}),
        "performance.offload=true": ("performance", {"offload": True}),
        "parallel.sequence_parallel=true": ("parallel", {"sequence_parallel": True}),
        "engine.memory_fraction=0.85": ("engine", {"memory_fraction": 0.85}),
    }
    for argument, (section, change) in tries.items():
        changed = getattr(recipe, section).model_copy(update=change)
        if changed != getattr(recipe, section):
            plan = make_plan(recipe.model_copy(update={section: changed}), shape)
            if plan.verdict != "does not fit":
                found.append(_sentence([argument], plan))
    return found


def _layout(recipe: Recipe, shape: ModelShape) -> list[str]:
    best = smallest_change(recipe, shape)
    return [_sentence(best.changes(recipe), best.plan)] if best else []


def _more_nodes(recipe: Recipe, shape: ModelShape) -> list[str]:
    for times in MORE:
        nodes = recipe.cluster.nodes * times
        cluster = recipe.cluster.model_copy(update={"nodes": nodes})
        best = smallest_change(recipe.model_copy(update={"cluster": cluster}), shape)
        if best:
            changes = [f"cluster.nodes={nodes}", *best.changes(recipe)]
            return [_sentence(changes, best.plan)]
    nodes = recipe.cluster.nodes * MORE[-1]
    return [f"nothing up to cluster.nodes = {nodes} fits; plan a shorter context with --context"]


def _sentence(changes: list[str], plan: Plan) -> str:
    arguments = " ".join(f"--set {change}" for change in changes)
    return (
        f"{arguments}  ({plan.layout.describe()}: peak {plan.peak / GIB:.1f} GiB, {plan.verdict})"
    )
