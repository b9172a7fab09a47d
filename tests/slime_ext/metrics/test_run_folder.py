"""Run folders: attempts counted, finished runs kept, a changed recipe refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from slime_ext.metrics.run_folder import RunFolderError, open_run, write_recipe
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe

LAB = Path("configs/embedded/lab.toml")


def recipe(*overrides: str) -> Recipe:
    return load_recipe(LAB, ["name=r", *overrides]).recipe


def test_attempts_are_counted(tmp_path: Path) -> None:
    folder, attempt = open_run(tmp_path, recipe(), fresh=False)
    write_recipe(folder, recipe())
    assert attempt == 1
    assert open_run(tmp_path, recipe(), fresh=False)[1] == 2


def test_no_value_of_the_environment_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "a-very-secret-key")
    folder, _ = open_run(tmp_path, recipe(), fresh=False)
    stored = "".join(p.read_text() for p in folder.path.rglob("*") if p.is_file())
    assert "WANDB_API_KEY" in stored
    assert "a-very-secret-key" not in stored


def test_a_finished_run_is_refused_and_fresh_sets_it_aside(tmp_path: Path) -> None:
    folder, _ = open_run(tmp_path, recipe(), fresh=False)
    write_recipe(folder, recipe())
    summary = {"steps": recipe().rollout.steps}
    folder.write_json(folder.summary, summary)
    with pytest.raises(RunFolderError, match="--fresh"):
        open_run(tmp_path, recipe(), fresh=False)
    again, attempt = open_run(tmp_path, recipe(), fresh=True)
    assert attempt == 1
    assert not again.summary.exists()
    assert json.loads((tmp_path / "r.1" / "summary.json").read_text()) == summary


def test_a_finished_run_trains_on_when_more_steps_are_asked_for(tmp_path: Path) -> None:
    folder, _ = open_run(tmp_path, recipe(), fresh=False)
    write_recipe(folder, recipe())
    folder.write_json(folder.summary, {"steps": recipe().rollout.steps})
    more = recipe(f"rollout.steps={recipe().rollout.steps + 1}")
    _, attempt = open_run(tmp_path, more, fresh=False)
    assert attempt == 2
    assert not folder.summary.exists()


def test_another_recipe_under_the_same_name_is_refused(tmp_path: Path) -> None:
    folder, _ = open_run(tmp_path, recipe(), fresh=False)
    write_recipe(folder, recipe())
    (folder.checkpoints / "iter_0000000").mkdir(parents=True)
    with pytest.raises(RunFolderError, match=r"optimiser\.lr: 0\.001 then, 0\.5 now"):
        open_run(tmp_path, recipe("optimiser.lr=0.5"), fresh=False)
    assert open_run(tmp_path, recipe("rollout.steps=99"), fresh=False)[1] == 2


def test_a_first_start_that_failed_binds_nobody(tmp_path: Path) -> None:
    folder, _ = open_run(tmp_path, recipe(), fresh=False)
    write_recipe(folder, recipe())
    again, attempt = open_run(tmp_path, recipe("optimiser.lr=0.5"), fresh=False)
    assert (again.path, attempt) == (folder.path, 1)
    assert (tmp_path / "r.1" / "recipe.toml").is_file()


def test_nothing_temporary_is_left(tmp_path: Path) -> None:
    folder, _ = open_run(tmp_path, recipe(), fresh=False)
    write_recipe(folder, recipe())
    names = [name for _, _, files in os.walk(folder.path) for name in files]
    assert sorted(names) == ["env.json", "recipe.toml"]


def test_alarms_may_change_on_the_way(tmp_path: Path) -> None:
    folder, _ = open_run(tmp_path, recipe(), fresh=False)
    write_recipe(folder, recipe())
    calmer = recipe("alarms.truncation.stop=true", "alarms.length.threshold=3")
    assert open_run(tmp_path, calmer, fresh=False)[1] == 2


def test_a_run_may_go_on_in_another_queue_and_not_on_other_gpus(tmp_path: Path) -> None:
    folder, _ = open_run(tmp_path, recipe(), fresh=False)
    write_recipe(folder, recipe())
    (folder.checkpoints / "iter_0000000").mkdir(parents=True)
    queue = ("cluster.partition=other", 'cluster.environment={ NCCL_IB_TC = "160" }')
    open_run(tmp_path, recipe(*queue), fresh=False)
    with pytest.raises(RunFolderError, match=r"cluster\.nodes: 1 then, 2 now"):
        open_run(tmp_path, recipe("cluster.nodes=2"), fresh=False)
