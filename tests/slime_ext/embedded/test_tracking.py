"""wandb offline: one id over attempts, an axis of our own, no row lost, no secret in any file."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from slime_ext.embedded.tracking import tracked
from slime_ext.host import loggers
from slime_ext.metrics.records import read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.metrics.stop_flag import STOPPED
from slime_ext.recipe.load import load_recipe
from tests.fakes.runs import finish, start, trained_steps, wait_for
from tests.fakes.wandb_file import (
    axes,
    complete,
    config_of,
    history,
    offline_files,
    present,
    run_ids,
)

LAB = Path(__file__).parents[3] / "configs" / "embedded" / "lab.toml"
PLANTED = {"WANDB_API_KEY": "0123456789" * 4, "JUDGE_KEY": "planted-judge-key"}


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


def test_a_run_through_a_kill_and_a_stop_is_one_wandb_run_and_shows_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    # This process's own helper of wandb would outlive the killed run and keep its id.
    monkeypatch.delenv("WANDB_SERVICE", raising=False)
    run = tmp_path / "lab"
    options = ["track.wandb=offline", 'cluster.secrets=["JUDGE_KEY"]']
    for steps, how, code in ((2, signal.SIGKILL, -signal.SIGKILL), (3, signal.SIGTERM, STOPPED)):
        process = start(tmp_path, *options)
        wait_for(lambda steps=steps: trained_steps(run) >= steps, process)
        process.send_signal(how)
        finish(process, code)
    finish(start(tmp_path, *options))
    # Of the killed attempt wandb has written what it had by then, which may be nothing.
    killed, *ended = offline_files(run)
    files = [found for found in (present(killed), *map(complete, ended)) if found]
    assert len({identity for found in files for identity in run_ids(found)}) == 1
    assert len(files) >= 2
    for found in files:
        steps = [row["_step"] for row in history(found)]
        assert steps == sorted(steps)
        assert config_of(found)["cluster"]["secrets"] == ["JUDGE_KEY"]
    for stream in ("rollout", "train", "eval"):
        axis = f"{stream}/step"
        logged = {row[axis] for found in files for row in history(found) if axis in row}
        rows = read_rows(run / "metrics" / f"{stream}.jsonl")
        assert logged >= {row["step"] for row in rows if row["attempt"] > 1}
        assert {row["step"] for row in rows} >= logged
    written = [path for path in (run / "wandb").rglob("*") if path.is_file()]
    text = b"".join(path.read_bytes() for path in written)
    assert [name for name, value in PLANTED.items() if value.encode() in text] == []
