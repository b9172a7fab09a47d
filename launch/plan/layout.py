"""How a recipe's GPUs are cut: tensor, pipeline, context, data and expert parallel, and engines.

One design choice: what a recipe leaves open (data parallel, rollout GPUs) is settled here once, and
everything after reads the settled numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from slime_ext.recipe.schema import Recipe


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes of every parallel group, and GPUs of training and rollout."""

    tp: int
    pp: int
    cp: int
    dp: int
    """0 where the GPUs do not hold one copy of the model."""
    ep: int
    etp: int
    sequence_parallel: bool
    train_gpus: int
    rollout_gpus: int
    engine_gpus: int
    engine_attention_groups: int
    """Data parallel groups for attention inside an engine; each holds sequences of its own."""
    colocate: bool

    @property
    def model_gpus(self) -> int:
        """GPUs of one copy of the model."""
        return self.tp * self.pp * self.cp

    @property
    def shards(self) -> int:
        """Ranks over which the distributed optimiser cuts its state (data x context parallel)."""
        return self.dp * self.cp

    @property
    def expert_shards(self) -> int:
        """The same for experts: copies of one expert inside a pipeline stage."""
        return self.train_gpus // self.pp // (self.ep * self.etp)

    @property
    def engines(self) -> int:
        return self.rollout_gpus // self.engine_gpus

    @property
    def engine_attention_tp(self) -> int:
        """GPUs over which an engine cuts attention heads."""
        return self.engine_gpus // self.engine_attention_groups

    def describe(self) -> str:
        """`TP 4, PP 2, CP 4, DP 1`, with expert parallel where there is one."""
        experts = f", EP {self.ep}, ETP {self.etp}" if self.ep * self.etp > 1 else ""
        return f"TP {self.tp}, PP {self.pp}, CP {self.cp}, DP {self.dp}{experts}"


def layout_of(recipe: Recipe) -> Layout:
    """The layout of a recipe; it may break rules, which `launch.plan.rules` names.

    Where training and rollout share the GPUs, both use all of them. Where they do not,
    `parallel.dp` or `cluster.rollout_gpus` decides the split, and with neither one copy of the
    model is trained.
    """
    parallel, cluster, engine = recipe.parallel, recipe.cluster, recipe.engine
    model_gpus = parallel.tp * parallel.pp * parallel.cp
    if cluster.colocate:
        train = rollout = cluster.gpus
    elif parallel.dp is not None:
        train = model_gpus * parallel.dp
        rollout = cluster.rollout_gpus or cluster.gpus - train
    elif cluster.rollout_gpus is not None:
        rollout = cluster.rollout_gpus
        train = cluster.gpus - rollout
    else:
        train = model_gpus
        rollout = cluster.gpus - train
    return Layout(
        tp=parallel.tp,
        pp=parallel.pp,
        cp=parallel.cp,
        dp=parallel.dp if parallel.dp is not None else max(0, train) // model_gpus,
        ep=parallel.ep,
        etp=parallel.etp,
        sequence_parallel=parallel.sequence_parallel and parallel.tp > 1,
        train_gpus=train,
        rollout_gpus=rollout,
        engine_gpus=engine.gpus,
        engine_attention_groups=engine.dp_attention,
        colocate=cluster.colocate,
    )
