"""An alarm that stops a run on a real SLURM: saved, recorded, and not queued again."""

from __future__ import annotations

import pytest

from slime_ext.metrics.records import read_rows
from slime_ext.metrics.stop_flag import ALARMED
from tests.slurm.conftest import Job, leftovers

pytestmark = pytest.mark.timeout(1200)


def test_an_alarm_ends_the_job_for_good_and_a_changed_recipe_goes_on(run: Job) -> None:
    recipe = run.recipe.read_text()
    run.recipe.write_text(recipe + "\n[alarms.truncation]\nwindow = 2\nstop = true\n")
    run.behave(cut=0.9)
    job = run.submit()
    assert run.wait(job) == "FAILED"
    log = run.log(job)
    assert run.exit_code(job) == ALARMED, log
    assert "alarm truncation at step 1: 90% of the responses are cut" in log
    assert "saved up to rollout 1 on request of alarm truncation" in log
    assert leftovers(job) == []
    run.recipe.write_text(recipe)
    again = run.submit()
    assert run.wait(again) == "COMPLETED", run.log(again)
    events = read_rows(run.folder / "events.jsonl")
    assert sum(event["kind"] == "alarm" for event in events) == 1
    # What the trainer wrote into its event files, attempt by attempt.
    rows = read_rows(run.folder / "metrics" / "train.jsonl")
    assert [(row["step"], row["attempt"]) for row in rows] == [
        (0, 1),
        (1, 1),
        (2, 2),
        (3, 2),
        (4, 2),
        (5, 2),
    ]
    rewards = [row["reward/total"] for row in read_rows(run.folder / "metrics" / "rollout.jsonl")]
    assert [row["loss"] for row in rows] == pytest.approx(rewards)
