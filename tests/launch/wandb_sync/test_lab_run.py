"""A real run that was killed and went on, as one W&B run from its records."""

from __future__ import annotations

import re
import signal
from typing import Any

import pytest

from launch.wandb_sync.panels import SECTIONS, PanelSpec
from launch.wandb_sync.sync import sync_offline
from slime_ext.metrics.records import last_rows, read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.metrics.wandb_run import wandb_run_id
from tests.fakes.runs import finish, start, trained_steps, wait_for
from tests.fakes.wandb_file import complete, history, offline_files, run_ids

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


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A lab run that was killed after a checkpoint and finished by a second attempt."""
    runs = tmp_path_factory.mktemp("killed")
    process = start(runs)
    wait_for(lambda: trained_steps(runs / "lab") >= 3, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finish(start(runs))
    return RunFolder(runs / "lab")


def test_every_step_is_there_once_with_its_last_values(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    assert any(row.get("again") for row in read_rows(run.metrics / "train.jsonl"))
    sync_offline(run, 120.0)
    (path,) = offline_files(run.path)
    found = complete(path)
    assert run_ids(found) == {wandb_run_id(run.path)}
    rows = history(found)
    steps = [row["_step"] for row in rows]
    assert steps == sorted(set(steps))
    for stream in ("rollout", "train"):
        wanted = last_rows(run.metrics / f"{stream}.jsonl")
        logged = {row["_step"]: row for row in rows if f"{stream}/step" in row}
        assert list(logged) == list(wanted)
        assert [_of(stream, row) for row in logged.values()] == list(map(_metrics, wanted.values()))
    text = b"".join(one.read_bytes() for one in path.parent.rglob("*") if one.is_file())
    assert [name for name, value in PLANTED.items() if value.encode() in text] == []
    _panels_are_filled({key for row in rows for key in row})


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
