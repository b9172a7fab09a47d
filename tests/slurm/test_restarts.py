"""Jobs that stop, crash, hang or meet a full disk, and go on: nothing is lost, nothing twice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slime_ext.metrics.records import last_rows, read_rows
from tests.slurm.conftest import Job, leftovers, make_run
from tests.slurm.test_jobs import until

pytestmark = pytest.mark.timeout(1200)
LAB = Path(__file__).parents[2] / "configs" / "embedded" / "lab.toml"


def rollouts(run: Job) -> list[dict[str, Any]]:
    return read_rows(run.folder / "metrics" / "rollout.jsonl")


def tell_to_stop(run: Job, job: str) -> None:
    """What SLURM does before it takes a job's nodes away."""
    run.cluster.run("scancel", "--batch", "--signal=USR1", job)


def let_go_on(run: Job, job: str, times: int) -> None:
    """Wait until the job was queued again for the N-th time, and end SLURM's hold on it."""
    until(lambda: int(run.field(job, "Restarts")) >= times)
    run.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now+4", check=False)


def uninterrupted(steps: int) -> dict[int, float]:
    """What the stand-in learns without a stop."""
    values, value = {}, 0.0
    for step in range(steps):
        value = 0.9 * value + step
        values[step] = value
    return values


def test_six_restarts_learn_what_one_run_learns(cluster, tmp_path: Path) -> None:
    """Crash, stop, crash, stop, crash, stop; each time the run goes on from its checkpoint."""
    steps, crashes = 16, [[1, 3], [3, 7], [5, 11]]
    run = make_run(cluster, tmp_path, nodes=1)
    text = run.recipe.read_text().replace("steps = 6", f"steps = {steps}")
    run.recipe.write_text(text.replace("pp = 2", "pp = 1"))
    run.behave(step_s=1.0, crashes=crashes, code=42)
    job = run.submit()
    for stopped in (2, 4, 6):
        assert run.wait(job) == "FAILED", run.log(job)
        assert run.exit_code(job) == 42, run.log(job)
        job = run.submit()
        until(lambda: stopped in {row["attempt"] for row in rollouts(run)})  # noqa: B023
        tell_to_stop(run, job)
        let_go_on(run, job, 1)
    assert run.wait(job) == "COMPLETED", run.log(job)
    assert "attempt 7, Ray job" in run.log(job)
    merged = last_rows(run.folder / "metrics" / "rollout.jsonl")
    assert {step: row["reward/total"] for step, row in merged.items()} == uninterrupted(steps)
    seen: set[int] = set()
    for row in rollouts(run):
        assert row.get("again", False) == (row["step"] in seen)
        seen.add(row["step"])
    again = {row["attempt"] for row in rollouts(run) if row.get("again")}
    assert again <= {2, 4, 6}, "a stop on request repeats nothing"


def test_a_hang_before_the_first_step_is_looked_into_on_every_node(run: Job) -> None:
    run.behave(hang=[1, 0])
    with run.recipe.open("a") as recipe:
        recipe.write("\n[watchdog]\nfactor = 2.0\nminimum_s = 20.0\n")
    job = run.submit()
    assert run.wait(job) == "FAILED", run.log(job)
    assert run.exit_code(job) == 70, run.log(job)
    logs = run.folder / "attempts" / "1" / "logs"
    for node in ("n1", "n2"):
        stacks = [path.read_text() for path in logs.glob(f"stacks_{node}_*.txt")]
        assert any("wait_for_the_others" in one for one in stacks), sorted(logs.iterdir())
    events = read_rows(run.folder / "events.jsonl")
    (stuck,) = [row for row in events if row["kind"] == "stuck"]
    assert stuck["silent_s"] > 20
    assert json.loads((logs / "engines.json").read_text())["router"] is None
    assert leftovers(job) == []


def test_the_embedded_backend_stops_and_goes_on_under_sbatch(cluster, tmp_path: Path) -> None:
    run = Job(cluster, tmp_path / "runs" / "lab", LAB, tmp_path)
    keys = ("rollout.steps=12", "data.options.eval_rows=8", "data.options.rows=64")
    python = f"cluster.python={sys.executable}"
    job = run.submit(*(word for key in (*keys, python) for word in ("--set", key)))
    until(lambda: len(rollouts(run)) >= 2)
    tell_to_stop(run, job)
    run.wait_for(job, "back to the queue")
    let_go_on(run, job, 1)
    assert run.wait(job) == "COMPLETED", run.log(job)
    assert json.loads((run.folder / "summary.json").read_text())["steps"] == 12
    rows = rollouts(run)
    assert [row["step"] for row in rows] == list(range(12))
    assert {row["attempt"] for row in rows} == {1, 2}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB in the place of the checkpoints."""
    place = tmp_path / "runs" / "standin" / "checkpoints"
    place.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_ends_the_job_and_spares_the_checkpoint_before(
    cluster, disk: Path, tmp_path: Path
) -> None:
    run = make_run(cluster, tmp_path, nodes=1)
    run.recipe.write_text(run.recipe.read_text().replace("pp = 2", "pp = 1"))
    run.behave(moments=600_000)
    job = run.submit()
    assert run.wait(job) == "FAILED", run.log(job)
    assert run.exit_code(job) == 1, run.log(job)
    said = [line for line in run.log(job).splitlines() if "is full" in line]
    assert len(said) == 1
    assert "iter_0000001 is whole" in said[0]
    assert leftovers(job) == []
    subprocess.run(["mount", "-o", "remount,size=16m", str(disk)], check=True)
    again = run.submit()
    assert run.wait(again) == "COMPLETED", run.log(again)
    assert "skipped checkpoint iter_0000003" in run.log(again)
    assert "starts from checkpoint iter_0000001; 4 of 6 rollouts remain" in run.log(again)
    merged = last_rows(run.folder / "metrics" / "rollout.jsonl")
    assert {step: row["reward/total"] for step, row in merged.items()} == uninterrupted(6)
