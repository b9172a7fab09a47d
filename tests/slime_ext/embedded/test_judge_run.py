"""Runs whose outcome is judged over HTTP: the judge goes away, comes back, or stays away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from slime_ext.metrics.records import last_rows, read_rows
from tests.fakes.exact_judge import exact_reply
from tests.fakes.judge import FakeJudge, fake_judge
from tests.fakes.runs import assert_same_run, finish, start, trained_steps, wait_for


def judged(judge: FakeJudge, **settings: object) -> list[str]:
    """Overrides that point a run at the stand-in, with the patience of a test."""
    patience: dict[str, object] = {
        "attempts": 2,
        "request_timeout_s": 5.0,
        "deadline_s": 20.0,
        "breaker_reset_s": 0.2,
        "retry_every_s": 0.2,
        **settings,
    }
    return [
        'outcome.kind="judge"',
        f'outcome.judge.endpoints=[{{url="{judge.url}"}}]',
        *(f"outcome.judge.{key}={value}" for key, value in patience.items()),
    ]


@pytest.fixture(scope="module")
def judge() -> Iterator[FakeJudge]:
    with fake_judge(exact_reply, latency_s=0.01) as fake:
        yield fake


@pytest.fixture(scope="module")
def reference(judge: FakeJudge, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged run that nothing disturbed."""
    runs = tmp_path_factory.mktemp("judged")
    finish(start(runs, *judged(judge)))
    return runs / "lab"


def test_a_judged_run_scores_and_counts(reference: Path) -> None:
    rows = last_rows(reference / "metrics" / "rollout.jsonl").values()
    assert all(row["undetermined"] == 0 for row in rows)
    assert sum(row["judge/verdicts/right"] for row in rows) > 0
    assert sum(row["judge/verdicts/wrong"] for row in rows) > 0
    assert sum(row["judge/prompt_tokens"] for row in rows) >= 0


def test_a_judge_that_goes_away_costs_time_and_nothing_else(
    judge: FakeJudge, reference: Path, tmp_path: Path
) -> None:
    run = tmp_path / "lab"
    process = start(tmp_path, *judged(judge))
    try:
        wait_for(lambda: trained_steps(run) >= 1, process)
        judge.down = True
        kinds = "judge_outage"
        wait_for(lambda: kinds in (run / "events.jsonl").read_text(), process)
        before = trained_steps(run)
        time.sleep(1.0)
        assert trained_steps(run) == before
    finally:
        judge.down = False
    finish(process)
    assert_same_run(run, reference)
    events = [row["kind"] for row in read_rows(run / "events.jsonl")]
    assert "judge_recovered" in events


def test_a_judge_that_stays_away_stops_the_run_resumably(
    judge: FakeJudge, reference: Path, tmp_path: Path
) -> None:
    run = tmp_path / "lab"
    process = start(tmp_path, *judged(judge, outage_limit_s=1.0))
    try:
        wait_for(lambda: trained_steps(run) >= 1, process)
        judge.down = True
        output = finish(process, code=75)
    finally:
        judge.down = False
    assert judge.url in output
    assert "the same command goes on" in output
    assert "Traceback" not in output
    finish(start(tmp_path, *judged(judge)))
    assert_same_run(run, reference)
