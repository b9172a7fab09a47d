"""The commands around a run on a real SLURM: status, logs, cancel, chains, the smoke run."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.slurm.conftest import ROOT, Job, leftovers

pytestmark = pytest.mark.timeout(1200)

CONVERTER = """
import json, pathlib, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
out = pathlib.Path(given["--output-dir"])
out.mkdir()
(out / "config.json").write_text("{}")
index = {"weight_map": {"lm_head.weight": pathlib.Path(given["--input-dir"]).name}}
(out / "model.safetensors.index.json").write_text(json.dumps(index))
"""


def refused(run: Job, *words: str) -> str:
    done = run.longrl(*words, check=False)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_sbatch_says_itself_what_is_wrong_with_a_partition(run: Job) -> None:
    runs = str(run.folder.parent)
    said = refused(run, "submit", str(run.recipe), "--runs", runs, "--set", "cluster.partition=no")
    assert "invalid partition specified: no" in said


def test_a_chain_goes_on_and_ends_cleanly_and_is_seen_and_cancelled(run: Job) -> None:
    runs = str(run.folder.parent)
    run.behave(step_s=12.0)
    run.submit("--chain", "3")
    first, second, third = (run.folder / "jobs.txt").read_text().split()
    run.wait_for(first, "16 GPUs on 2 nodes")
    shown = run.longrl("status", "standin", "--runs", runs).stdout
    lines = {words[0]: words[1:] for line in shown.splitlines() if (words := line.split())}
    assert lines[first][0] == "RUNNING"
    assert lines[second][:2] == ["PENDING", "Dependency"]
    assert f"job {third} of standin is PENDING" in refused(
        run, "submit", str(run.recipe), "--runs", runs
    )
    following = subprocess.Popen(
        [sys.executable, "-m", "launch.cli.main", "logs", str(run.folder), "-f"],
        env={**run.cluster.environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    run.cluster.run("scancel", "--batch", "--signal=USR1", first)
    assert run.wait(first) == "FAILED"
    assert run.exit_code(first) == 75, run.log(first)
    run.behave()
    assert run.wait(second) == "COMPLETED", run.log(second)
    assert "rollouts remain" in run.log(second)
    assert run.wait(third) == "COMPLETED", run.log(third)
    assert "none remain" in run.log(third)
    text, _ = following.communicate(timeout=60)
    assert text.count("starts on n1 n2") == 3
    assert [leftovers(job) for job in (first, second, third)] == [[], [], []]
    assert "no job that waits or runs" in run.longrl("cancel", str(run.folder)).stdout


def test_cancel_ends_this_run_alone(run: Job) -> None:
    other = run.cluster.run("sbatch", "--parsable", "--wrap", "sleep 300", "--gres=gpu:1").strip()
    run.behave(hang=[1, 0])
    job = run.submit()
    # A job of somebody else's in the list of this run is not ours by its script.
    with (run.folder / "jobs.txt").open("a") as jobs:
        jobs.write(f"{other}\n")
    run.wait_for(job, "16 GPUs on 2 nodes")
    assert run.longrl("cancel", str(run.folder)).stdout == f"cancelled job {job} of standin\n"
    assert run.wait(job) == "CANCELLED"
    assert run.field(other, "JobState") in ("RUNNING", "PENDING")
    run.cluster.run("scancel", other)


def test_a_smoke_run_saves_resumes_and_exports(run: Job) -> None:
    (run.standin / "tools").mkdir()
    (run.standin / "tools" / "convert_torch_dist_to_hf.py").write_text(CONVERTER)
    runs = run.folder.parent
    run.longrl("submit", str(run.recipe), "--runs", str(runs), "--smoke")
    smoke = Job(run.cluster, runs / "standin-smoke", run.recipe, run.standin)
    job = (smoke.folder / "jobs.txt").read_text().strip()
    assert smoke.wait(job) == "COMPLETED", smoke.log(job)
    log = smoke.log(job)
    assert "starts from the base model; 1 of 1 rollouts remain" in log
    assert "starts from checkpoint iter_0000000; 1 of 2 rollouts remain" in log
    assert "exported 1 tensors" in log
    assert len((smoke.folder / "data" / "train.jsonl").read_text().splitlines()) == 8
    assert leftovers(job) == []
