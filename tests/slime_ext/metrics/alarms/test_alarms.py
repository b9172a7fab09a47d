"""Telling: once until it clears, over restarts, to a W&B run, and as a request to stop."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from slime_ext.embedded.tracking import tracked
from slime_ext.metrics.alarms.alarms import Alarms
from slime_ext.metrics.records import Records, read_rows
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.metrics.stop_flag import ALARMED, STOPPED, StopFlag, exit_code
from slime_ext.recipe.alarm_section import AlarmsSection
from slime_ext.recipe.load import load_recipe
from tests.fakes import wandb_file

LAB = Path(__file__).parents[4] / "configs" / "embedded" / "lab.toml"

CUT = AlarmsSection.model_validate({"truncation": {"window": 1}})
STOPPING = AlarmsSection.model_validate({"truncation": {"window": 1, "stop": True}})


def nobody(reason: str) -> None:
    raise AssertionError(reason)


def look(run: Path, shares: list[float], section: AlarmsSection = CUT, first: int = 0) -> None:
    """One attempt with these truncated shares."""
    records = Records(run)
    alarms = Alarms(section, records, nobody)
    for step, share in enumerate(shares, first):
        records.write("rollout", step, {"truncated_share": share})
        alarms.look(step)


def told(run: Path) -> list[tuple[str, int]]:
    return [(row["kind"], row["step"]) for row in read_rows(run / "events.jsonl")]


def test_an_alarm_is_told_once_until_it_clears(tmp_path: Path) -> None:
    look(tmp_path, [0.6, 0.7, 0.2, 0.2, 0.9, 0.9])
    assert told(tmp_path) == [("alarm", 0), ("alarm_cleared", 2), ("alarm", 4)]


def test_a_new_attempt_knows_what_was_told(tmp_path: Path) -> None:
    look(tmp_path, [0.6, 0.7])
    look(tmp_path, [0.7, 0.7, 0.1], first=2)
    assert told(tmp_path) == [("alarm", 0), ("alarm_cleared", 4)]


def test_rows_of_a_lost_attempt_that_lie_ahead_are_not_judged(tmp_path: Path) -> None:
    Records(tmp_path).write("rollout", 9, {"truncated_share": 1.0})
    look(tmp_path, [0.1, 0.1])
    assert told(tmp_path) == []


def test_an_active_wandb_run_gets_the_alert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts: list[dict[str, str]] = []
    run = SimpleNamespace(alert=lambda **words: alerts.append(words))
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=run))
    look(tmp_path, [0.6, 0.6])
    [sent] = alerts
    assert sent["title"] == "alarm truncation"
    assert "60% of the responses are cut" in sent["text"]
    run.alert = None
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=None))
    look(tmp_path / "other", [0.6])


def test_a_stop_is_asked_for_as_long_as_the_alarm_holds(tmp_path: Path) -> None:
    flag = StopFlag(tmp_path)
    records = Records(tmp_path)
    records.write("rollout", 0, {"truncated_share": 0.8})
    Alarms(STOPPING, records, flag.ask).look(0)
    reason = flag.asked()
    assert reason is not None
    assert "alarm truncation: 80%" in reason
    assert "alarms.truncation.stop = false" in reason
    assert exit_code(reason) == ALARMED
    assert exit_code("job 7") == exit_code("SIGUSR1") == exit_code(None) == STOPPED
    flag.clear()
    # Told already by the attempt before, but it holds still.
    Alarms(STOPPING, records, flag.ask).look(0)
    assert exit_code(flag.asked()) == ALARMED
    assert told(tmp_path) == [("alarm", 0)]


def test_figures_that_could_not_be_recorded_are_judged(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.write("rollout", 0, {"truncated_share": 0.1})
    holding = Alarms(CUT, records, nobody).look(0, {"gradient norm": float("inf")})
    assert "gradient norm" in holding["not_finite"].text
    assert told(tmp_path) == [("alarm", 0)]


def test_the_real_client_records_the_alert_of_an_embedded_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with tracked(load_recipe(LAB, ["track.wandb=offline"]).recipe, folder):
        look(tmp_path, [0.6])
    [file] = wandb_file.offline_files(tmp_path)
    found = [one.alert for one in wandb_file.complete(file) if one.HasField("alert")]
    assert [(one.title, one.level) for one in found] == [("alarm truncation", "WARN")]
    assert found[0].text.startswith("alarm truncation at step 0: 60% of the responses are cut")
