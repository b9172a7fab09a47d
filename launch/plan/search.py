"""Layouts that fit, best first, and the smallest change that makes a plan fit.

One design choice: no invented speed of a network. Layouts are ordered by what arithmetic says: idle
GPUs (pipeline bubble and uneven batches), then bytes that leave a node, then bytes that GPUs
exchange at all, then memory to spare.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from launch.plan.engine import engine_memory
from launch.plan.layout import Layout, layout_of
from launch.plan.plan import Plan, make_plan
from launch.plan.rules import engine_rules, trainer_rules
from launch.plan.tokens import cdiv
from launch.plan.traffic import Traffic, traffic
from launch.plan.verdict import ORDER
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.shape import ModelShape

_SIZES = (1, 2, 4, 8, 16, 32)
_ROOM = 0.05
"""Idle shares that differ by less count as equal."""
_NEARLY = 0.9


@dataclass(frozen=True, slots=True)
class Candidate:
    """A layout that keeps all rules and fits, with its plan and the recipe that has it."""

    recipe: Recipe
    plan: Plan
    idle: float
    """Share of the training GPUs' time spent waiting, if all samples cost the same."""
    traffic: Traffic

    @property
    def layout(self) -> Layout:
        return self.plan.layout

    def changes(self, asked: Recipe) -> list[str]:
        """`--set` arguments that turn `asked` into this candidate."""
        pairs = []
        for section, keys in (("parallel", ("tp", "pp", "cp", "ep", "dp")), ("engine", ("gpus",))):
            for key in keys:
                old = getattr(getattr(asked, section), key)
                new = getattr(getattr(self.recipe, section), key)
                if old != new and new is not None:
                    pairs.append(f"{section}.{key}={new}")
        return pairs


def search_layouts(recipe: Recipe, shape: ModelShape) -> list[Candidate]:
    """Every layout of the recipe's GPUs that keeps all rules and fits, best first; each with the
    smallest engine that has nearly the most full-length responses under way."""
    return _fitting(_with_engine(recipe, _best_engine(recipe, shape)), shape)


def smallest_change(recipe: Recipe, shape: ModelShape) -> Candidate | None:
    """The candidate that changes fewest keys of the recipe, best of those; None where nothing
    fits."""
    found = _fitting(recipe, shape) or search_layouts(recipe, shape)
    return min(found, key=lambda one: (len(one.changes(recipe)), *_rank(one)), default=None)


def _fitting(recipe: Recipe, shape: ModelShape) -> list[Candidate]:
    if engine_rules(recipe, shape):
        return []
    found = []
    for changed in _layouts(recipe, shape):
        plan = make_plan(changed, shape)
        if plan.verdict != "does not fit":
            found.append(Candidate(changed, plan, _idle(changed, plan), _traffic(changed, shape)))
    return sorted(found, key=_rank)


def _rank(candidate: Candidate) -> tuple[float, ...]:
    """Traffic counts in powers of two: what differs by less is equal, and memory decides."""
    plan, sent = candidate.plan, candidate.traffic
    return (
        ORDER.index(plan.verdict),
        candidate.idle // _ROOM,
        round(math.log2(1 + sent.between_nodes)),
        round(math.log2(1 + sent.total)),
        plan.peak,
    )


def _traffic(recipe: Recipe, shape: ModelShape) -> Traffic:
    return traffic(shape, layout_of(recipe), recipe.cluster.gpus_per_node)


def _idle(recipe: Recipe, plan: Plan) -> float:
    """1 - responses / (DP x (micro-batches + PP - 1)), a response taken as a micro-batch."""
    rollout, layout = recipe.rollout, plan.layout
    responses = rollout.prompts * rollout.group_size // rollout.updates
    rounds = cdiv(responses, layout.dp) + layout.pp - 1
    return 1 - responses / (layout.dp * rounds)


def _layouts(recipe: Recipe, shape: ModelShape) -> Iterator[Recipe]:
    """Recipes with every trainer layout that keeps the rules, on as many GPUs; TP stays inside a
    node."""
    settled = layout_of(recipe)
    cluster = recipe.cluster
    if not cluster.colocate:
        cluster = cluster.model_copy(update={"rollout_gpus": settled.rollout_gpus})
    tensor = [size for size in _SIZES if size <= cluster.gpus_per_node]
    experts = _SIZES if shape.moe else (1,)
    for tp, pp, cp, ep in itertools.product(tensor, _SIZES, _SIZES, experts):
        sizes: dict[str, int | None] = {"tp": tp, "pp": pp, "cp": cp, "ep": ep}
        sizes["etp"] = recipe.parallel.etp if shape.moe else 1
        stated = recipe.parallel.dp is not None
        sizes["dp"] = max(1, settled.train_gpus // (tp * pp * cp)) if stated else None
        parallel = recipe.parallel.model_copy(update=sizes)
        changed = recipe.model_copy(update={"parallel": parallel, "cluster": cluster})
        if not trainer_rules(changed, shape):
            yield changed


def _best_engine(recipe: Recipe, shape: ModelShape) -> int:
    """GPUs of the smallest engine, inside a node where possible, that has nearly the most responses
    under way; the recipe's own where no size keeps the rules."""
    under_way: dict[int, int] = {}
    for gpus in _SIZES:
        changed = _with_engine(recipe, gpus)
        if not engine_rules(changed, shape):
            engine = engine_memory(changed, shape, layout_of(changed))
            under_way[gpus] = min(engine.under_way, engine.wanted)
    node = recipe.cluster.gpus_per_node
    inside = {gpus: most for gpus, most in under_way.items() if gpus <= node and most}
    sizes = inside or under_way or {recipe.engine.gpus: 1}
    return next(gpus for gpus, most in sizes.items() if most >= _NEARLY * max(sizes.values()))


def _with_engine(recipe: Recipe, gpus: int) -> Recipe:
    engine = recipe.engine.model_copy(update={"gpus": gpus})
    return recipe.model_copy(update={"engine": engine})
