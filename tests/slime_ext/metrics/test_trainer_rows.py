"""Real event files, written as slime's processes write them, into metrics/train.jsonl."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from torch.utils.tensorboard import SummaryWriter

from slime_ext.metrics.alarms.alarms import Alarms
from slime_ext.metrics.records import Records, last_rows, read_rows
from slime_ext.metrics.run_folder import RunFolder, start_attempt
from slime_ext.metrics.trainer_rows import FILES, TrainerRows
from slime_ext.recipe.alarm_section import AlarmsSection

UPDATES = 2


class Trainer:
    """Logs what slime's trainer logs of a rollout, in its order."""

    def __init__(self, run: Path) -> None:
        self.writer = SummaryWriter(str(run / "tensorboard"))

    def log(self, metrics: dict[str, float], step: int) -> None:
        for key, value in metrics.items():
            self.writer.add_scalar(key, value, step)

    def update(self, rollout: int, update: int, loss: float) -> None:
        metrics = {"train/loss": loss, "train/grad_norm": 0.5, "train/lr-pg_0": 2e-6}
        self.log(metrics, rollout * UPDATES + update)

    def rollout(self, rollout: int, loss: float = 0.25, perf: bool = True) -> None:
        self.log({"rollout/raw_reward": 0.5}, rollout)
        for update in range(UPDATES):
            self.update(rollout, update, loss + update)
        if perf:
            self.log({"perf/step_time": 60.0, "perf/wait_time_ratio": 0.5}, rollout)
        self.writer.flush()


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run in its first attempt."""
    folder = RunFolder(tmp_path)
    assert start_attempt(folder) == 1
    return folder


def trained(folder: RunFolder) -> list[dict[str, Any]]:
    return read_rows(folder.metrics / "train.jsonl")


def test_a_step_is_the_mean_of_its_updates_under_the_number_of_its_rollout(
    folder: RunFolder,
) -> None:
    trainer, rows = Trainer(folder.path), TrainerRows(folder, UPDATES, 1)
    assert rows.look() == 0
    for step in range(3):
        trainer.rollout(step, loss=step + 0.25)
        assert rows.look() == 1
        assert rows.look() == 0
    assert [row["step"] for row in trained(folder)] == [0, 1, 2]
    last = trained(folder)[-1]
    assert last["loss"] == 2.75
    assert last["lr-pg_0"] == pytest.approx(2e-6)
    assert last["perf/step_time"] == 60.0
    assert last["attempt"] == 1
    assert not any(key.startswith(("rollout/", "train/")) for key in last)


def test_a_row_waits_until_it_is_whole(folder: RunFolder) -> None:
    trainer, rows = Trainer(folder.path), TrainerRows(folder, UPDATES, 1)
    trainer.update(0, 0, 1.0)
    trainer.writer.flush()
    assert rows.look() == 0
    trainer.update(0, 1, 3.0)
    trainer.writer.flush()
    assert rows.look() == 0
    trainer.update(1, 0, 5.0)
    trainer.writer.flush()
    assert rows.look() == 1
    assert trained(folder)[0]["loss"] == 2.0
    assert rows.finish() == 1
    assert [row["loss"] for row in trained(folder)] == [2.0, 5.0]


def test_an_entry_cut_in_the_middle_is_read_when_the_rest_is_there(folder: RunFolder) -> None:
    other = folder.path / "elsewhere"
    trainer = Trainer(other)
    for step in range(3):
        trainer.rollout(step)
    [source] = other.rglob(FILES)
    data = source.read_bytes()
    growing = folder.path / "tensorboard" / source.name
    growing.parent.mkdir()
    growing.touch()
    rows = TrainerRows(folder, UPDATES, 1)
    written = 0
    for start in range(0, len(data), 37):
        with growing.open("ab") as file:
            file.write(data[start : start + 37])
        written += rows.look()
    assert written == 3
    assert [row["loss"] for row in trained(folder)] == [0.75] * 3


def test_the_next_attempt_brings_in_what_a_killed_one_left(folder: RunFolder) -> None:
    first = Trainer(folder.path)
    first.rollout(0)
    TrainerRows(folder, UPDATES, 1).look()
    first.rollout(1)
    first.rollout(2, perf=False)
    first.writer.close()
    [file] = (folder.path / "tensorboard").rglob(FILES)
    made = int(file.name.split(".")[3])
    # The second attempt begins later, with rollout 1 again.
    assert start_attempt(folder) == 2
    os.utime(folder.path / "attempts" / "2" / "env.json", (made + 90, made + 90))
    second = Trainer(folder.path)
    second.rollout(1, loss=0.5)
    second.writer.close()
    [late] = [one for one in (folder.path / "tensorboard").rglob(FILES) if one != file]
    late.rename(late.with_name(late.name.replace(str(late.name.split(".")[3]), str(made + 120))))
    assert TrainerRows(folder, UPDATES, 2).look() == 3
    found = [(row["step"], row["attempt"], row.get("again", False)) for row in trained(folder)]
    assert found == [(0, 1, False), (1, 1, False), (2, 1, False), (1, 2, True)]
    assert last_rows(folder.metrics / "train.jsonl")[1]["loss"] == 1.0
    assert TrainerRows(folder, UPDATES, 2).finish() == 0


def test_the_files_of_other_processes_give_no_rows(folder: RunFolder) -> None:
    rollouts = SummaryWriter(str(folder.path / "tensorboard"), filename_suffix=".rollout")
    for step in range(3):
        rollouts.add_scalar("rollout/reward/total", 0.5, step)
        rollouts.add_scalar("perf/rollout_time", 30.0, step)
    rollouts.close()
    rows = TrainerRows(folder, UPDATES, 1)
    assert rows.look() == rows.finish() == 0
    assert trained(folder) == []


def test_a_nan_of_the_trainer_trips_the_alarm_at_the_next_rollout(folder: RunFolder) -> None:
    trainer, rows, records = (
        Trainer(folder.path),
        TrainerRows(folder, UPDATES, 1),
        Records(folder.path),
    )
    alarms = Alarms(AlarmsSection(), records, lambda reason: None)
    for step in range(4):
        records.write("rollout", step, {"samples": 8.0})
        assert alarms.look(step) == {}
        trainer.rollout(step, loss=math.nan if step == 3 else 0.1)
        rows.look()
    records.write("rollout", 4, {"samples": 8.0})
    assert "loss" in alarms.look(4)["not_finite"].text
    assert json.loads((folder.metrics / "train.jsonl").read_text().splitlines()[3])["loss"] is None


def test_without_tensorboard_it_says_so_once(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Trainer(folder.path).rollout(0)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    rows = TrainerRows(folder, UPDATES, 1)
    assert rows.look() == rows.finish() == 0
    assert capsys.readouterr().out.count("pip install tensorboard") == 1
