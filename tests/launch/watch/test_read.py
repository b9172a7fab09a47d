"""Reading a run folder: restarts, half a line, nothing yet, no run at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from launch.slurm.find_run import NoRunError
from launch.watch.read import NothingToWatchError, run_to_watch, snapshot
from tests.launch.watch.records import BEGAN, Run, restarted_run


def test_a_step_done_again_counts_once_and_a_lost_one_not_at_all(tmp_path: Path) -> None:
    run = restarted_run(tmp_path)
    run.records.event("checkpoint", step=8)
    seen = snapshot(run.folder.path)
    assert (seen.done, seen.steps, seen.attempt) == (8, 20, 2)
    assert len(seen.stamps) == 10
    assert len(seen.rows) == 8
    # A third attempt goes back to step 2: what lies ahead of it is no longer shown.
    run.attempt(BEGAN + 9000)
    run.step(2, BEGAN + 9100)
    seen = snapshot(run.folder.path)
    assert (seen.done, seen.attempt, len(seen.rows)) == (3, 3, 3)


def test_half_a_last_line_is_left_out(tmp_path: Path) -> None:
    run = restarted_run(tmp_path)
    for name in ("metrics/rollout.jsonl", "metrics/train.jsonl", "events.jsonl"):
        with (run.folder.path / name).open("a") as file:
            file.write('{"step": 8, "kind": "al')
    assert snapshot(run.folder.path).done == 8


def test_alarms_that_hold_are_told_from_those_that_cleared(tmp_path: Path) -> None:
    run = restarted_run(tmp_path)
    run.event("alarm", BEGAN, step=3, rule="truncation", value=0.6, text="cut")
    run.event("alarm", BEGAN, step=4, rule="length", value=2.6, text="long")
    run.event("alarm_cleared", BEGAN, step=5, rule="truncation")
    assert [one["rule"] for one in snapshot(run.folder.path).alarms] == ["length"]


def test_a_run_before_its_first_step_is_empty(tmp_path: Path) -> None:
    seen = snapshot(Run(tmp_path).folder.path)
    assert (seen.done, seen.attempt, seen.rows, seen.events) == (0, 0, [], [])
    assert seen.steps == 20
    assert not seen.ended


def test_a_run_without_a_summary_has_ended_once_it_is_quiet_after_its_last_step(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    run.attempt(BEGAN)
    for step in range(20):
        run.step(step, BEGAN + step)
        assert not snapshot(run.folder.path, now=BEGAN + step + 10).ended
    assert snapshot(run.folder.path, now=BEGAN + 2000).ended


def test_a_submitted_run_is_known_by_what_was_submitted(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.folder.recipe.rename(run.folder.path / "submitted.toml")
    assert snapshot(run.folder.path).steps == 20


def test_no_run_and_no_run_folder_are_errors_that_say_so(tmp_path: Path) -> None:
    Run(tmp_path / "runs", "watched")
    with pytest.raises(NoRunError, match="watched"):
        run_to_watch("watchd", tmp_path / "runs")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NothingToWatchError, match=r"holds none of recipe\.toml"):
        run_to_watch(str(tmp_path / "empty"), tmp_path / "runs")
    assert run_to_watch("watched", tmp_path / "runs") == tmp_path / "runs" / "watched"
