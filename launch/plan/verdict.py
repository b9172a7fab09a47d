"""Whether a plan fits: each limit with what is needed, what is there, and the term that binds.

One design choice: `tight` is a verdict of its own, because every term is an estimate: it is what
the last few GiB of a GPU deserve, and it stops no run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from launch.plan.engine import GIB, EngineMemory
from launch.plan.storage import HostMemory
from launch.plan.trainer import StageMemory
from slime_ext.recipe.schema import Recipe

Verdict = Literal["fits", "tight", "does not fit"]
ORDER: tuple[Verdict, ...] = ("fits", "tight", "does not fit")
TIGHT = {"trainer GPU": 0.95, "engine GPU": 0.95, "host memory": 0.85}
"""Share of what is there above which a limit is tight."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit; bytes."""

    name: str
    need: float
    have: float
    binding: str
    """The largest term of what is needed."""

    @property
    def verdict(self) -> Verdict:
        if self.need > self.have:
            return "does not fit"
        return "tight" if self.need > TIGHT[self.name] * self.have else "fits"

    @property
    def share(self) -> float:
        """Need over have; infinite where nothing is there."""
        return self.need / self.have if self.have > 0 else float("inf")

    def sentence(self) -> str:
        return (
            f"{self.name}: {self.need / GIB:.1f} of {self.have / GIB:.1f} GiB, "
            f"most of it {self.binding}"
        )


def limits(
    recipe: Recipe, stages: Sequence[StageMemory], engine: EngineMemory, host: HostMemory
) -> list[Limit]:
    """The trainer's fullest stage, the engine with one sequence of full length, and the host."""
    return [
        _trainer(recipe, stages, engine),
        _engine(recipe, engine),
        _host(recipe, host),
    ]


def worst(limits: Sequence[Limit]) -> Limit:
    """The limit that decides: the worst verdict, and of those the fullest."""
    return max(limits, key=lambda limit: (ORDER.index(limit.verdict), limit.share))


def _largest(terms: dict[str, float]) -> str:
    name = max(terms, key=lambda term: terms[term])
    return f"{name} ({terms[name] / GIB:.1f} GiB)"


def _trainer(recipe: Recipe, stages: Sequence[StageMemory], engine: EngineMemory) -> Limit:
    fullest = max(stages, key=lambda stage: stage.peak)
    terms = fullest.terms()
    cluster = recipe.cluster
    if cluster.colocate and not recipe.performance.offload:
        terms["the engine beside it"] = recipe.engine.memory_fraction * cluster.gpu_memory_gib * GIB
    reserve = recipe.plan.reserve_gib * GIB
    return Limit(
        name="trainer GPU",
        need=sum(terms.values()) + reserve,
        have=cluster.gpu_memory_gib * GIB,
        binding=f"{_largest(terms)} on stage {fullest.stage}",
    )


def _engine(recipe: Recipe, engine: EngineMemory) -> Limit:
    sequence = engine.sequence_bytes / (engine.gpus / recipe.engine.dp_attention)
    terms = {"weights": engine.weights_per_gpu, "one sequence of full length": sequence}
    return Limit(
        name="engine GPU",
        need=sum(terms.values()),
        have=recipe.engine.memory_fraction * recipe.cluster.gpu_memory_gib * GIB,
        binding=_largest(terms),
    )


def _host(recipe: Recipe, host: HostMemory) -> Limit:
    terms = {
        "copies of the weights": host.weight_copies,
        "offloaded optimiser": host.offloaded,
        "the checkpoint being saved": host.saving,
    }
    return Limit(
        name="host memory",
        need=host.total,
        have=recipe.cluster.host_memory_gib * GIB,
        binding=_largest(terms),
    )
