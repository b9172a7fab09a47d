"""What must divide what, each with both values and what would do."""

from __future__ import annotations

from typing import Any

import pytest

from launch.plan.layout import layout_of
from launch.plan.plan import PlanError, make_plan
from launch.plan.rules import LayoutError, broken_rules
from tests.launch.plan.made import made, shape_of


@pytest.mark.parametrize(
    ("model", "changes", "said"),
    [
        ("30b", {"parallel__tp": 8, "parallel__cp": 2}, "tp = 8 does not divide the 4 key-value"),
        ("4b", {"parallel__tp": 3}, "parallel.tp = 3 does not divide the 32 attention heads"),
        ("4b", {"parallel__pp": 5}, "parallel.pp = 5 does not divide the 36 layers"),
        ("4b", {"parallel__cp": 8}, "4 x 2 x 8 = 64 GPUs and training has 32"),
        ("4b", {"parallel__cp": 3}, "does not use the 32 GPUs of training"),
        ("4b", {"parallel__dp": 2}, "x dp = 2 does not use the 32 GPUs"),
        ("4b", {"parallel__ep": 2}, "parallel.ep = 2, but the model has no experts"),
        ("30b", {"parallel__ep": 3}, "parallel.ep = 3 does not divide the 128 experts"),
        ("30b", {"parallel__ep": 32}, "32 x 1 does not divide the 16 GPUs of a pipeline stage"),
        ("30b", {"parallel__etp": 5}, "parallel.etp = 5 does not divide the 768 columns"),
        ("30b", {"parallel__sequence_parallel": False}, "only with sequence parallel"),
        ("4b", {"engine__gpus": 3}, "engine.gpus = 3 does not divide the 32 GPUs of rollout"),
        ("4b", {"engine__gpus": 32, "cluster__gpus_per_node": 6, "cluster__nodes": 16},
         "neither divides the 6 GPUs of a node"),
        ("4b", {"engine__dp_attention": 3}, "engine.dp_attention = 3 does not divide the 8 GPUs"),
        ("4b", {"engine__ep": 2}, "engine.ep = 2, but the model has no experts"),
        ("30b", {"engine__ep": 3}, "engine.ep = 3 does not divide the 8 GPUs of an engine"),
        ("4b", {"parallel__tp": 1, "parallel__pp": 1, "parallel__cp": 1, "rollout__prompts": 2},
         "16 responses of an update are fewer than the 32 data parallel ranks"),
        ("4b", {"cluster__colocate": False, "parallel__dp": 1, "cluster__rollout_gpus": 8},
         "training takes 32 and rollout 8 GPUs, the cluster has 32"),
        ("4b", {"cluster__colocate": False}, "write cluster.rollout_gpus or parallel.dp"),
        ("4b", {"cluster__colocate": False, "parallel__dp": 1}, "none is left for rollout"),
        ("4b", {"cluster__colocate": False, "cluster__rollout_gpus": 20, "parallel__pp": 1,
                "parallel__cp": 1, "engine__gpus": 4}, "12 GPUs train, which is no multiple"),
        ("4b", {"slime__version": "v0.2.4", "rollout__prompts": 9, "parallel__cp": 1,
                "parallel__pp": 1, "parallel__tp": 2},
         "are no multiple of the 16 data parallel ranks"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_named(model: str, changes: dict[str, Any], said: str) -> None:
    broken = broken_rules(made(**changes), shape_of(model))
    assert any(said in one for one in broken), broken
    with pytest.raises(LayoutError, match="cannot run"):
        make_plan(made(**changes), shape_of(model))


def test_all_broken_rules_at_once_with_what_would_do() -> None:
    broken = broken_rules(made(parallel__tp=3, engine__gpus=5), shape_of("4b"))
    assert len(broken) >= 4
    assert "parallel.tp may be 1, 2, 4, 8, 16, 32" in broken[0]


@pytest.mark.parametrize("model", ["4b", "8b", "30b"])
def test_the_published_layouts_keep_all_rules(model: str) -> None:
    experts = {"parallel__ep": 16} if model == "30b" else {}
    assert broken_rules(made(**experts), shape_of(model)) == []


def test_data_parallel_takes_what_is_left() -> None:
    layout = layout_of(made(parallel__cp=1))
    assert (layout.dp, layout.train_gpus, layout.rollout_gpus) == (4, 32, 32)


@pytest.mark.parametrize(
    ("changes", "train", "rollout", "dp"),
    [
        ({"cluster__rollout_gpus": 16}, 16, 16, 2),
        ({"parallel__dp": 3}, 24, 8, 3),
    ],
)
def test_gpus_of_training_and_rollout_apart(
    changes: dict[str, Any], train: int, rollout: int, dp: int
) -> None:
    layout = layout_of(made(cluster__colocate=False, parallel__cp=1, **changes))
    assert (layout.train_gpus, layout.rollout_gpus, layout.dp) == (train, rollout, dp)


def test_the_embedded_backend_is_not_planned() -> None:
    with pytest.raises(PlanError, match="backend=slime"):
        make_plan(made(backend="embedded"), shape_of("4b"))
