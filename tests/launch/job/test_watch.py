"""When a run counts as stuck, and what is said of its engines then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from launch.job.engines import engine_state
from launch.job.watch import STUCK, Watch
from slime_ext.metrics.records import read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.rollout.engine_address import FILE
from tests.launch.job.recipes import job_recipe


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "attempts" / "2" / "logs").mkdir(parents=True)
    (tmp_path / "metrics").mkdir()
    return RunFolder(tmp_path)


def watch(folder: RunFolder, now: list[float], minimum_s: float = 50.0) -> Watch:
    recipe = job_recipe(watchdog={"factor": 10.0, "minimum_s": minimum_s})
    return Watch(recipe, folder, 2, clock=lambda: now[0])


def steps(folder: RunFolder, *rows: tuple[int, int, float]) -> None:
    """Rows (step, attempt, time); the file's own time is that of the last."""
    import os

    path = folder.metrics / "rollout.jsonl"
    path.write_text(
        "".join(json.dumps({"step": s, "attempt": a, "time": t}) + "\n" for s, a, t in rows)
    )
    os.utime(path, (rows[-1][2], rows[-1][2]))


def test_a_first_step_has_the_minimum_from_the_start_on(folder: RunFolder) -> None:
    now = [1000.0]
    look = watch(folder, now)
    now[0] = 1050.0
    assert look() is None
    now[0] = 1051.0
    assert look() == STUCK
    (event,) = read_rows(folder.path / "events.jsonl")
    assert (event["kind"], event["silent_s"]) == ("stuck", 51.0)
    assert event["engines"] == "no request was made to an engine yet"


def test_later_steps_have_a_multiple_of_the_median(folder: RunFolder) -> None:
    now = [1000.0]
    look = watch(folder, now)
    steps(folder, (0, 2, 1000.0), (1, 2, 1020.0), (2, 2, 1040.0), (3, 2, 1090.0))
    assert look.limit_s() == 200.0
    now[0] = 1290.0
    assert look() is None
    now[0] = 1291.0
    assert look() == STUCK


def test_the_queue_between_two_attempts_is_no_step(folder: RunFolder) -> None:
    look = watch(folder, [0.0], minimum_s=1.0)
    steps(folder, (0, 1, 0.0), (1, 1, 10.0), (2, 2, 90000.0), (3, 2, 90010.0))
    assert look.limit_s() == 100.0


def test_a_restart_late_in_a_run_starts_the_clock_anew(folder: RunFolder) -> None:
    steps(folder, (0, 1, 0.0), (1, 1, 1.0))
    now = [5000.0]
    look = watch(folder, now)
    now[0] = 5049.0
    assert look() is None


def test_a_disk_that_takes_no_word_does_not_save_a_stuck_run(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    look = watch(folder, now)
    (folder.path / "attempts" / "2" / "logs").rmdir()
    now[0] = 51.0
    assert look() == STUCK
    assert "could not be saved" in capsys.readouterr().out


@pytest.fixture
def noted(folder: RunFolder, httpserver: HTTPServer) -> dict[str, Any]:
    """A router with one worker that answers, one that fails, and one that is gone."""
    router = httpserver.url_for("").rstrip("/")
    (folder.path / FILE).write_text(json.dumps({"router": router}))
    urls = [f"{router}/good", f"{router}/ill", "http://127.0.0.1:9"]
    answer = {"workers": [{"url": url, "is_healthy": True} for url in urls]}
    httpserver.expect_request("/good/health").respond_with_data("")
    httpserver.expect_request("/good/v1/loads").respond_with_json({"loads": [{"running": 3}]})
    httpserver.expect_request("/ill/health").respond_with_data("", status=503)
    httpserver.expect_request("/ill/v1/loads").respond_with_data("no json")
    return answer


def test_every_engine_is_asked(
    folder: RunFolder, httpserver: HTTPServer, noted: dict[str, Any]
) -> None:
    httpserver.expect_request("/workers").respond_with_json(noted)
    state = engine_state(folder.path)
    good, ill, gone = state.workers
    assert (good["health"], good["loads"]) == (200, {"loads": [{"running": 3}]})
    assert ill["health"] == 503
    assert "ConnectError" in gone["health"]
    assert state.describe() == f"1 of 3 engines answer; not: {ill['url']}, {gone['url']}"
    json.dumps(state.to_json())


@pytest.mark.parametrize("body", ["[]", "oops", '{"urls": ["http://a:1"]}'])
def test_a_router_of_another_form_is_said(
    body: str, folder: RunFolder, httpserver: HTTPServer, noted: dict[str, Any]
) -> None:
    httpserver.expect_request("/workers").respond_with_data(body)
    assert "gives no workers" in engine_state(folder.path).describe()


def test_a_router_that_is_gone_is_said(folder: RunFolder) -> None:
    (folder.path / FILE).write_text('{"router": "http://127.0.0.1:9"}')
    assert "ConnectError" in engine_state(folder.path).describe()
