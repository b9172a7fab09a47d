"""A real run that was killed and stopped: one W&B run, live and from its records."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from launch.wandb_sync.panels import SECTIONS, PanelSpec
from launch.wandb_sync.sync import sync_offline
from slime_ext.metrics.records import last_rows, read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.metrics.stop_flag import STOPPED
from slime_ext.metrics.wandb_run import wandb_run_id
from tests.fakes.runs import finish, start, trained_steps, wait_for
from tests.fakes.wandb_file import complete, config_of, history, offline_files, present, run_ids

PLANTED = {"WANDB_API_KEY": "0123456789" * 4, "JUDGE_KEY": "planted-judge-key"}
NOT_OF_THE_LAB = {
    "Rubric reward",
    "Without a reward, by reason",
    "Ill-formed, by reason",
    "Thinking tokens",
    "Content tokens",
    "KL to the reference",
    "Engine troubles",
    *(panel.title for panel in SECTIONS["Judge health"]),
}
"""Panels without a line in a run without a rubric, a judge, a reference model and trouble."""


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A run that was killed, stopped and finished, and wandb's files of its three attempts."""

    folder: RunFolder
    files: list[Path]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Disturbed:
    """One offline lab run in three attempts, with keys in the environment."""
    runs = tmp_path_factory.mktemp("disturbed")
    options = ("track.wandb=offline", 'cluster.secrets=["JUDGE_KEY"]')
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PLANTED.items():
            patch.setenv(name, value)
        # A helper process of wandb that this one has would outlive the kill and keep the run's id.
        patch.delenv("WANDB_SERVICE", raising=False)
        for steps, how, code in ((2, signal.SIGKILL, -9), (3, signal.SIGTERM, STOPPED)):
            process = start(runs, *options)
            wait_for(lambda steps=steps: trained_steps(runs / "lab") >= steps, process)
            process.send_signal(how)
            finish(process, code)
        finish(start(runs, *options))
    return Disturbed(RunFolder(runs / "lab"), offline_files(runs / "lab"))


@pytest.mark.timeout(900)
def test_what_wandb_wrote_live_is_one_run_and_of_ended_attempts_whole(run: Disturbed) -> None:
    # Of the killed attempt wandb has written what it had by then, which may be nothing.
    killed, *ended = run.files
    files = [found for found in (present(killed), *map(complete, ended)) if found]
    assert len(ended) == 2
    assert {one for found in files for one in run_ids(found)} == {wandb_run_id(run.folder.path)}
    for found in files:
        steps = [row["_step"] for row in history(found)]
        assert steps == sorted(steps)
        assert config_of(found)["cluster"]["secrets"] == ["JUDGE_KEY"]
    for stream in ("rollout", "train", "eval"):
        axis = f"{stream}/step"
        logged = {row[axis] for found in files for row in history(found) if axis in row}
        rows = read_rows(run.folder.metrics / f"{stream}.jsonl")
        assert logged >= {row["step"] for row in rows if row["attempt"] > 1}
        assert {row["step"] for row in rows} >= logged
    assert _planted_in(run.folder.path / "wandb") == []


@pytest.mark.timeout(900)
def test_from_the_records_every_step_is_there_once_with_its_last_values(run: Disturbed) -> None:
    metrics = run.folder.metrics
    assert any(row.get("again") for row in read_rows(metrics / "train.jsonl"))
    sync_offline(run.folder, 120.0)
    path = offline_files(run.folder.path)[-1]
    found = complete(path)
    assert run_ids(found) == {wandb_run_id(run.folder.path)}
    rows = history(found)
    steps = [row["_step"] for row in rows]
    assert steps == sorted(set(steps))
    for stream in ("rollout", "train"):
        wanted = last_rows(metrics / f"{stream}.jsonl")
        logged = {row["_step"]: row for row in rows if f"{stream}/step" in row}
        assert list(logged) == list(wanted)
        assert [_of(stream, row) for row in logged.values()] == list(map(_metrics, wanted.values()))
    assert _planted_in(path.parent) == []
    _panels_are_filled({key for row in rows for key in row})


def _planted_in(folder: Path) -> list[str]:
    text = b"".join(one.read_bytes() for one in folder.rglob("*") if one.is_file())
    assert text
    return [name for name, value in PLANTED.items() if value.encode() in text]


def _of(stream: str, row: dict[str, Any]) -> dict[str, Any]:
    prefix = f"{stream}/"
    return {k.removeprefix(prefix): v for k, v in row.items() if k.startswith(prefix)}


def _metrics(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in ("attempt", "time", "again")}


def _panels_are_filled(logged: set[str]) -> None:
    panels = [panel for section in SECTIONS.values() for panel in section]
    empty = {panel.title for panel in panels if not any(_draws(panel, name) for name in logged)}
    assert empty <= NOT_OF_THE_LAB


def _draws(panel: PanelSpec, name: str) -> bool:
    return name in panel.names() or (not panel.names() and bool(re.match(panel.pattern(), name)))
