"""The smoke version of every shipped recipe fits one node and keeps what chooses code."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launch.argument_groups.gpus import gpu_split
from launch.arguments import slime_arguments
from launch.slurm.smoke import smoke_recipe, write_smoke_data
from slime_ext.data.schema import Row
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe
from tests.launch.recipes import DENSE, dense_recipe

ROOT = Path(__file__).parents[3]
RECIPES = [
    path
    for folder in ("longtracerl", "longrlvr", "eapo", "coem")
    for path in sorted((ROOT / "configs" / folder).glob("*.toml"))
    if path.stem != "base"
]


def smoke_of(path: Path, *changes: str) -> tuple[Recipe, Recipe]:
    recipe = load_recipe(path, changes).recipe
    return recipe, smoke_recipe(recipe, Path("/shared/runs"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_recipe_has_a_smoke_version_that_slime_takes(path: Path) -> None:
    recipe, smoke = smoke_of(path)
    argv = [word for group in slime_arguments(smoke, Path("/r")).values() for word in group]
    assert smoke.name == f"{recipe.name}-smoke"
    assert (smoke.cluster.nodes, smoke.rollout.steps, smoke.checkpoint.every) == (1, 2, 1)
    assert smoke.rollout.context_tokens == 8192
    assert smoke.rollout.prompts * smoke.rollout.group_size <= 64
    assert argv[argv.index("--num-rollout") + 1] == "2"
    assert "Qwen3-0.6B" in argv[argv.index("--hf-checkpoint") + 1]
    kept = ("reward", "advantage", "loss", "optimiser", "slime", "seed", "backend", "performance")
    for name in kept[:-1]:
        assert getattr(smoke, name) == getattr(recipe, name)
    assert smoke.rollout.kind == recipe.rollout.kind


@settings(max_examples=60, deadline=None)
@given(
    gpus=st.integers(1, 16),
    tp=st.sampled_from([1, 2, 4, 8]),
    cp=st.sampled_from([1, 2, 4]),
    pp=st.sampled_from([1, 2, 4]),
    colocate=st.booleans(),
    engine=st.sampled_from([1, 2, 4, 8]),
)
def test_the_layout_fits_any_node(
    gpus: int, tp: int, cp: int, pp: int, colocate: bool, engine: int, tmp_path_factory
) -> None:
    recipe = dense_recipe(
        tmp_path_factory.mktemp("r"),
        f"cluster.gpus_per_node={gpus}",
        f"cluster.colocate={str(colocate).lower()}",
        "cluster.rollout_gpus=1",
        f"parallel.tp={tp}",
        f"parallel.cp={cp}",
        f"parallel.pp={pp}",
        f"engine.gpus={engine}",
    )
    smoke = smoke_recipe(recipe, Path("/r"))
    split = gpu_split(smoke)
    assert split.train_nodes == 1
    assert split.train_per_node <= gpus
    sizes = smoke.parallel
    copies = split.train_nodes * split.train_per_node // (sizes.tp * sizes.cp * sizes.pp)
    assert smoke.rollout.prompts * smoke.rollout.group_size % copies == 0
    assert (sizes.tp <= tp, sizes.cp <= cp, sizes.pp <= pp) == (True, True, True)
    assert smoke.engine.gpus <= engine


def test_the_judge_of_the_job_itself_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.toml"
    path.write_text(
        DENSE
        + """
[outcome]
kind = "judge"
[outcome.judge]
endpoints = [{ url = "http://${LONGRL_SERVICE_JUDGE}:30000/v1" }]
[[cluster.services]]
name = "judge"
command = "exec judge"
port = 30000
own_node = true
"""
    )
    recipe, smoke = smoke_of(path)
    assert recipe.cluster.services
    assert smoke.cluster.services == []
    assert smoke.outcome.kind == "f1"


def test_another_model_is_taken_as_its_folder_says(tmp_path: Path) -> None:
    smoke = smoke_recipe(dense_recipe(tmp_path), Path("/r"), Path("/models/small"))
    assert smoke.model.path == "/models/small"
    assert (smoke.model.facts, smoke.model.hub, smoke.model.megatron_checkpoint) == (
        None,
        None,
        None,
    )


def test_its_data_are_there_and_fit(tmp_path: Path) -> None:
    smoke = smoke_recipe(dense_recipe(tmp_path), tmp_path / "runs")
    write_smoke_data(smoke)
    lines = Path(smoke.data.train).read_text().splitlines()
    assert len(lines) >= smoke.rollout.prompts
    assert max(map(len, lines)) < smoke.data.max_prompt_tokens
    for line in lines:
        row = Row.model_validate_json(line)
        assert row.gold_entities
        assert row.gold_chunks
