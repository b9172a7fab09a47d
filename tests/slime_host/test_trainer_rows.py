"""What slime's own logger writes into event files is what our records get of the trainer."""

from __future__ import annotations

import importlib
from argparse import Namespace
from pathlib import Path

import pytest

from slime_ext.host import loggers
from slime_ext.host.features import logging_module
from slime_ext.metrics.records import read_rows
from slime_ext.metrics.run_folder import RunFolder, start_attempt
from slime_ext.metrics.trainer_rows import TrainerRows


def test_the_trainers_metrics_pass_from_slimes_logger_into_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORBOARD_DIR", str(tmp_path / "tensorboard"))
    monkeypatch.setattr(loggers, "_sink", None)
    folder = RunFolder(tmp_path)
    start_attempt(folder)
    args = Namespace(
        use_wandb=False, use_tensorboard=True, tb_project_name="p", tb_experiment_name="e"
    )
    log = logging_module().log
    for step in range(4):
        loggers.log(args, {"rollout/reward/total": 0.5}, step // 2)
        trained = {"train/entropy_loss": 0.5 + step, "train/grad_norm": 0.25, "train/step": step}
        log(args, trained, step_key="train/step")
    timed = {"perf/step_time": 9.0, "perf/wait_time_ratio": 0.5, "rollout/step": 1}
    log(args, timed, step_key="rollout/step")
    adapter = importlib.import_module(f"{logging_module().__package__}.tensorboard_utils")
    adapter._TensorboardAdapter(args).finish()
    assert TrainerRows(folder, updates=2, attempt=1).look() == 2
    rows = read_rows(folder.metrics / "train.jsonl")
    assert [(row["step"], row["entropy_loss"], row["grad_norm"]) for row in rows] == [
        (0, 1.0, 0.25),
        (1, 3.0, 0.25),
    ]
    assert rows[1]["perf/step_time"] == 9.0
    assert not any(key.startswith("rollout/") for row in rows for key in row)
