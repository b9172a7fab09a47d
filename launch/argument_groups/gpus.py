"""How many GPUs train and how many sample, from cluster and layout.

One design choice: a count that the recipe leaves open is whatever the other leaves, and a layout
that does not divide its GPUs is refused here, because slime would wait for the missing ones for
ever.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.argument_groups.words import CannotExpressError
from slime_ext.recipe.schema import Recipe


@dataclass(frozen=True, slots=True)
class GpuSplit:
    """GPUs by what they do; shared ones count on both sides."""

    train_nodes: int
    train_per_node: int
    rollout: int

    @property
    def train(self) -> int:
        """GPUs of the trainer."""
        return self.train_nodes * self.train_per_node


def gpu_split(recipe: Recipe) -> GpuSplit:
    """Raises CannotExpressError where layout, engines and GPUs do not fit each other."""
    cluster, engine = recipe.cluster, recipe.engine
    train, rollout = _shared(recipe) if cluster.colocate else _apart(recipe)
    if rollout % engine.gpus:
        raise CannotExpressError(
            f"engine.gpus = {engine.gpus} does not divide the {rollout} GPUs that sample; write a "
            "divisor"
        )
    per_node = min(train, cluster.gpus_per_node)
    if train % per_node:
        raise CannotExpressError(
            f"{train} GPUs train, which is no multiple of cluster.gpus_per_node = "
            f"{cluster.gpus_per_node}; change parallel or cluster.rollout_gpus"
        )
    return GpuSplit(train // per_node, per_node, rollout)


def _shared(recipe: Recipe) -> tuple[int, int]:
    parallel, gpus = recipe.parallel, recipe.cluster.gpus
    copy = parallel.tp * parallel.pp * parallel.cp
    if gpus % copy or (parallel.dp is not None and copy * parallel.dp != gpus):
        copies = "" if parallel.dp is None else f" x dp {parallel.dp}"
        raise CannotExpressError(
            f"tp {parallel.tp} x pp {parallel.pp} x cp {parallel.cp}{copies} does not fill the "
            f"{gpus} GPUs of the cluster; leave parallel.dp out and let tp x pp x cp divide {gpus}"
        )
    return gpus, gpus


def _apart(recipe: Recipe) -> tuple[int, int]:
    parallel, cluster = recipe.parallel, recipe.cluster
    copy = parallel.tp * parallel.pp * parallel.cp
    if parallel.dp is None and cluster.rollout_gpus is None:
        raise CannotExpressError(
            "training and rollout do not share GPUs (cluster.colocate = false); write "
            "cluster.rollout_gpus or parallel.dp"
        )
    train = copy * parallel.dp if parallel.dp else cluster.gpus - (cluster.rollout_gpus or 0)
    rollout = cluster.rollout_gpus or cluster.gpus - train
    if train <= 0 or rollout <= 0 or train + rollout > cluster.gpus or train % copy:
        raise CannotExpressError(
            f"{train} GPUs for training (tp {parallel.tp} x pp {parallel.pp} x cp {parallel.cp} = "
            f"{copy} a copy) and {rollout} for rollout do not fit the {cluster.gpus} GPUs of the "
            "cluster; change parallel, cluster.rollout_gpus or cluster.nodes"
        )
    return train, rollout
