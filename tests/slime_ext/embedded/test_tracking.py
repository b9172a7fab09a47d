"""wandb offline: one id over attempts, an axis of our own, no row lost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from slime_ext.embedded.tracking import tracked
from slime_ext.host import loggers
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.errors import RecipeError
from slime_ext.recipe.load import load_recipe
from tests.fakes.wandb_file import axes, complete, history, offline_files, run_ids

LAB = Path(__file__).parents[3] / "configs" / "embedded" / "lab.toml"


def test_two_attempts_share_an_id_and_lose_no_row(tmp_path: Path) -> None:
    recipe = load_recipe(LAB, ["track.wandb=offline"]).recipe
    identities, values = set(), []
    for steps in ((0, 1, 2), (1, 2, 3)):
        with tracked(recipe, RunFolder(tmp_path)):
            for step in steps:
                loggers.log(None, {"rollout/reward/total": step / 10}, step)
                loggers.log(None, {"train/loss": -step / 10}, step, axis="train/step")
        found = complete(offline_files(tmp_path)[-1])
        identities |= run_ids(found)
        values += history(found)
        assert axes(found) == {
            "rollout/*": "rollout/step",
            "train/*": "train/step",
            "eval/*": "eval/step",
            "perf/*": "rollout/step",
        }
        time.sleep(1.1)  # wandb names the folder by the second; a restart takes longer than one
    assert len(identities) == 1
    logged = [(r["rollout/step"], r["rollout/reward/total"]) for r in values if "rollout/step" in r]
    assert logged == [(step, step / 10) for step in (0, 1, 2, 1, 2, 3)]
    assert [r["train/step"] for r in values if "train/loss" in r] == [0, 1, 2, 1, 2, 3]


def test_nothing_is_written_when_it_is_off(tmp_path: Path) -> None:
    with tracked(load_recipe(LAB).recipe, RunFolder(tmp_path)):
        loggers.log(None, {"longrl/reward": 1.0}, 0)
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_wandb_refuses_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "short")
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    recipe = load_recipe(LAB, ["track.wandb=online"]).recipe
    with (
        pytest.raises(RecipeError, match=r"track.wandb=offline(.|\n)*longrl sync"),
        tracked(recipe, RunFolder(tmp_path)),
    ):
        pass
