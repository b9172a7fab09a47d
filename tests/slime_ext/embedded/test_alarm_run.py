"""Real runs of the lab recipe that trip alarms: responses cut, no signal, a step that diverges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from slime_ext.metrics.records import last_rows, read_rows
from slime_ext.metrics.stop_flag import ALARMED
from tests.fakes.runs import finish, start

CUT = [
    "rollout.max_response_tokens=4",
    "eval.rows=2",
    "alarms.truncation.window=2",
    "alarms.zero_signal.window=2",
]
"""Four tokens hold no answer: every response is cut, scores 0 and teaches nothing."""


def alarms(run: Path) -> dict[str, dict[str, Any]]:
    """The newest alarm event of each rule."""
    events = read_rows(run / "events.jsonl")
    return {event["rule"]: event for event in events if event["kind"] == "alarm"}


def test_cut_responses_are_told_and_stop_the_run_where_asked(tmp_path: Path) -> None:
    said = finish(start(tmp_path, *CUT, "alarms.truncation.stop=true"), ALARMED)
    run = tmp_path / "lab"
    found = alarms(run)
    assert {name: event["step"] for name, event in found.items()} == {
        "truncation": 1,
        "zero_signal": 1,
    }
    assert [event["value"] for event in found.values()] == [1.0, 1.0]
    assert said.count("alarm truncation at step 1: 100% of the responses are cut") == 1
    assert "stopped at step 2: alarm truncation" in said
    assert list(last_rows(run / "metrics" / "train.jsonl")) == [0, 1]
    assert not (run / "summary.json").exists()
    # The same command with the stop taken away goes on to the end, and repeats nothing.
    said = finish(start(tmp_path, *CUT, "rollout.steps=3"))
    assert "alarm truncation" not in said
    assert list(last_rows(run / "metrics" / "train.jsonl")) == [0, 1, 2]
    kinds = [event["kind"] for event in read_rows(run / "events.jsonl")]
    assert kinds.count("alarm") == 2
    assert kinds[-1] == "finished"


def test_a_diverging_step_is_told_before_it_ends_the_run(tmp_path: Path) -> None:
    said = finish(start(tmp_path, "optimiser.lr=1e39", "rollout.prompts=12"), 2)
    [event] = alarms(tmp_path / "lab").values()
    assert event["rule"] == "not_finite"
    assert f"alarm not_finite at step {event['step']}: {event['text']}" in said


def test_a_run_that_learns_trips_nothing(tmp_path: Path) -> None:
    settings = ("rollout.steps=4", "eval.rows=2", "alarms.zero_signal.window=2")
    said = finish(start(tmp_path, *settings))
    assert "alarm" not in said
    assert alarms(tmp_path / "lab") == {}
