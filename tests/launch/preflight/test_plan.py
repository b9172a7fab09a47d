"""The plan's verdict as a finding, on the recipe of the 4B."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from launch.plan.engine import GIB
from launch.plan.plan import make_plan
from launch.plan.rules import LayoutError
from launch.preflight.arguments import check_arguments
from launch.preflight.context import Context
from launch.preflight.plan import check_plan
from slime_ext.errors import ExplainedError
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.places import configs_folder
from tests.launch.preflight.conftest import named

MakeCluster = Callable[..., Context]


@pytest.fixture
def cluster(tmp_path: Path) -> MakeCluster:
    """cluster("KEY=VALUE", ...) -> the context of the 4B recipe with some keys changed."""

    def make(*overrides: str) -> Context:
        path = configs_folder() / "longtracerl" / "qwen3-4b.toml"
        recipe = load_recipe(path, overrides).recipe
        return Context(recipe, recipe, tmp_path, offline=True)

    return make


def test_the_papers_layout_fits(cluster: MakeCluster) -> None:
    context = cluster()
    finding = named(check_plan(context.recipe, context), "memory")
    assert finding.status == "pass"
    assert finding.message.startswith("fits")


def test_160k_without_context_parallelism_does_not(cluster: MakeCluster) -> None:
    context = cluster("parallel.cp=1", "parallel.pp=1", "parallel.tp=1")
    finding = named(check_plan(context.recipe, context), "memory")
    assert finding.status == "fail"
    assert "parallel." in finding.remedy, "what would fit is named"


def test_a_tight_plan_warns(cluster: MakeCluster) -> None:
    asked = cluster("parallel.cp=1")
    need = make_plan(asked.recipe, asked.shape).binding.need / GIB
    for gib, status in ((need / 1.01, "fail"), (need / 0.99, "warn"), (need / 0.9, "pass")):
        context = cluster("parallel.cp=1", f"cluster.gpu_memory_gib={gib}")
        finding = named(check_plan(context.recipe, context), "memory")
        assert finding.status == status, finding


def test_a_layout_that_breaks_a_rule(cluster: MakeCluster) -> None:
    context = cluster("parallel.tp=3")
    with pytest.raises(LayoutError, match="3"):
        check_plan(context.recipe, context)


def test_arguments_are_built_and_counted(cluster: MakeCluster) -> None:
    context = cluster()
    finding = named(check_arguments(context.recipe, context), "flags")
    assert finding.status == "pass"
    assert "known to slime v0.3.1" in finding.message


def test_a_misspelt_flag_is_refused(cluster: MakeCluster) -> None:
    context = cluster("extra.slime.rollout-batch-sise=3")
    with pytest.raises(ExplainedError, match="rollout-batch-size"):
        check_arguments(context.recipe, context)
