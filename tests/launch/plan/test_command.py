"""`longrl plan`: what it prints, its JSON and its exit codes; every shipped recipe has a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from launch.cli.plan import plan
from launch.models.facts import shape_for
from launch.plan.plan import PlanError, make_plan
from launch.plan.rules import LayoutError
from slime_ext.recipe.load import load_recipe
from tests.launch.recipes import DENSE

CONFIGS = Path(__file__).parents[3] / "configs"
LAB = CONFIGS / "embedded" / "lab.toml"
RECIPES = sorted(
    file
    for file in CONFIGS.glob("*/*.toml")
    if file.parent.name not in ("cluster", "embedded") and file.stem != "base"
)


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    file = tmp_path / "dense.toml"
    file.write_text(DENSE)
    return file


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_cluster_recipe_fits(file: Path) -> None:
    loaded = load_recipe(file).recipe
    assert make_plan(loaded, shape_for(loaded)).verdict == "fits"


def test_there_are_recipes_of_every_method() -> None:
    assert {file.parent.name for file in RECIPES} >= {"longtracerl", "longrlvr", "eapo", "coem"}


def test_the_tables_state_the_context(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(recipe) == 0
    printed = capsys.readouterr().out
    assert "at 160,000 tokens" in printed
    assert "verdict: fits" in printed
    assert "is soft" in printed
    assert "a preemption loses" in printed


def test_json_and_the_plan_in_a_run_folder(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(recipe, json=True, write=tmp_path / "run") == 0
    printed = json.loads(capsys.readouterr().out)
    written = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert printed["verdict"] == written["verdict"] == "fits"
    assert printed["stages"][1]["peak"] == written["stages"][1]["peak"] > 20e9
    assert printed["context_tokens"] == 160_000
    assert printed["duration"]["gpu_hours"] > 0


def test_what_does_not_fit_ends_in_2_and_a_command(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(recipe, ("parallel.cp=1", "performance.log_prob_chunk=1024")) == 2
    printed = capsys.readouterr().out
    assert "verdict: does not fit" in printed
    assert "what would fit: --set parallel.cp=2" in printed


def test_tight_ends_in_1(recipe: Path) -> None:
    assert plan(recipe, ("cluster.gpu_memory_gib=27",)) == 1


def test_context_replaces_the_recipes(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(recipe, ("parallel.cp=1",), context=32_768) == 0
    assert "at 32,768 tokens" in capsys.readouterr().out


def test_search_lists_layouts(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(recipe, search=True) == 0
    assert "best: --set parallel." in capsys.readouterr().out
    assert plan(recipe, search=True, json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert all(one["verdict"] in ("fits", "tight") for one in found)
    assert plan(recipe, ("cluster.gpu_memory_gib=8",), search=True) == 2


def test_tensor_parallel_that_does_not_divide_the_key_value_heads(recipe: Path) -> None:
    with pytest.raises(LayoutError, match="16 does not divide the 8 key-value heads") as raised:
        plan(recipe, ("parallel.tp=16", "parallel.cp=1"))
    assert "may be 1, 2, 4, 8" in str(raised.value)


def test_an_embedded_recipe_gets_its_parameter_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan(LAB) == 0
    assert "108,416 parameters" in capsys.readouterr().out
    assert plan(LAB, json=True) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == 108_416


def test_no_length_is_no_context(recipe: Path) -> None:
    with pytest.raises(PlanError, match="--context 0 is no length"):
        plan(recipe, context=0)
