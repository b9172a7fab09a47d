"""The plan of a recipe: layout, memory, storage, time, and whether it fits.

One design choice: a plan is plain data that was computed once; tables, JSON, search and preflight
read it and compute nothing of their own.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launch.plan.duration import Duration, plan_duration
from launch.plan.engine import GIB, EngineMemory, engine_memory
from launch.plan.layout import Layout, layout_of
from launch.plan.log_probs import LogProbMemory, log_prob_memory
from launch.plan.observed import observe
from launch.plan.rules import require_rules
from launch.plan.storage import Disk, HostMemory, disk, host_memory
from launch.plan.tokens import MicroBatch, largest_micro_batch
from launch.plan.trainer import StageMemory, all_stages
from launch.plan.verdict import Limit, Verdict, limits, worst
from slime_ext.errors import ExplainedError
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.count import count_parameters
from slime_ext.weights.shape import ModelShape


class PlanError(ExplainedError, ValueError):
    """A recipe that cannot be planned."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything `longrl plan` shows; memory in bytes, every term an estimate."""

    name: str
    host: str
    """slime's version."""
    context_tokens: int
    parameters: int
    layout: Layout
    batch: MicroBatch
    stages: list[StageMemory]
    reserve: float
    """Bytes added to a training GPU's peak (`plan.reserve_gib`)."""
    log_probs: LogProbMemory
    engine: EngineMemory
    host_memory: HostMemory
    disk: Disk
    duration: Duration
    judge_gpus: int
    reward_model_gpus: int
    limits: list[Limit]

    @property
    def binding(self) -> Limit:
        """The limit that decides the verdict."""
        return worst(self.limits)

    @property
    def verdict(self) -> Verdict:
        return self.binding.verdict

    @property
    def peak(self) -> float:
        """Peak of the fullest pipeline stage, without the reserve."""
        return max(stage.peak for stage in self.stages)

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values, with the verdict and the sums that are properties here."""
        table = dataclasses.asdict(self)
        for row, stage in zip(table["stages"], self.stages, strict=True):
            row |= {"static": stage.static, "peak": stage.peak}
        for row, limit in zip(table["limits"], self.limits, strict=True):
            row["verdict"] = limit.verdict
        time = self.duration
        table["duration"] |= {
            "step_s": time.step_s,
            "hours": time.hours,
            "gpu_hours": time.gpu_hours,
            "samples": time.samples,
            "tokens_per_step": time.tokens_per_step,
            "expected_loss_s": time.expected_loss_s,
        }
        table["disk"]["peak"] = self.disk.peak
        return table | {"verdict": self.verdict, "binding": self.binding.sentence()}


def make_plan(recipe: Recipe, shape: ModelShape, run: Path | None = None) -> Plan:
    """Plan a recipe of the slime backend; the first steps of the folder `run` correct its hours.

    Raises LayoutError where the layout breaks a rule, RunRecordsError where `run` has too few
    steps, PlanError for the embedded backend.
    """
    if recipe.backend != "slime":
        raise PlanError(
            f"backend = {recipe.backend!r} has no GPUs to plan; add --set backend=slime"
        )
    require_rules(recipe, shape)
    layout = layout_of(recipe)
    batch = largest_micro_batch(recipe, layout)
    log_probs = log_prob_memory(recipe, shape, layout, batch)
    stages = all_stages(recipe, shape, layout, batch, log_probs)
    engine = engine_memory(recipe, shape, layout)
    host = host_memory(recipe, layout, stages)
    return Plan(
        name=recipe.name,
        host=recipe.slime.version,
        context_tokens=recipe.rollout.context_tokens,
        parameters=count_parameters(shape).total,
        layout=layout,
        batch=batch,
        stages=stages,
        reserve=recipe.plan.reserve_gib * GIB,
        log_probs=log_probs,
        engine=engine,
        host_memory=host,
        disk=disk(recipe, shape),
        duration=plan_duration(recipe, shape, layout, observe(run) if run else None),
        judge_gpus=recipe.plan.judge_gpus,
        reward_model_gpus=recipe.plan.reward_model_gpus,
        limits=limits(recipe, stages, engine, host),
    )


def at_context(recipe: Recipe, tokens: int) -> Recipe:
    """The recipe as if `rollout.context_tokens` were `tokens`; for planning only.

    Raises PlanError for less than one token.
    """
    if tokens < 1:
        raise PlanError(f"--context {tokens} is no length; write a number of tokens, e.g. 131072")
    rollout = recipe.rollout.model_copy(update={"context_tokens": tokens})
    return recipe.model_copy(update={"rollout": rollout})
