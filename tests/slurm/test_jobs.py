"""Jobs on a real SLURM with a real Ray: how each kind of end ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from slime_ext.metrics.records import last_rows, read_rows
from tests.slurm.conftest import Job, leftovers, make_run

pytestmark = pytest.mark.timeout(1200)


def test_a_cluster_forms_trains_and_leaves_nothing(cluster, tmp_path: Path) -> None:
    run = make_run(cluster, tmp_path, nodes=4)
    job = run.submit()
    assert run.wait(job) == "COMPLETED", run.log(job)
    log = run.log(job)
    assert re.search(r"Ray is ready after \d+ s: 4 nodes, 32 GPUs", log)
    assert "starts from the base model; 6 of 6 rollouts remain" in log
    assert "32 GPUs on 4 nodes" in log
    assert list(last_rows(run.folder / "metrics" / "rollout.jsonl")) == [0, 1, 2, 3, 4, 5]
    assert (run.folder / "checkpoints" / "latest_checkpointed_iteration.txt").read_text() == "5"
    assert leftovers(job) == []
    assert json.loads((run.folder / "summary.json").read_text())["steps"] == 6
    again = run.longrl("submit", str(run.recipe), "--runs", str(run.folder.parent), check=False)
    assert again.returncode == 2
    assert "a finished run of 6 steps" in again.stderr


def test_a_crash_of_the_driver_ends_the_job_with_its_code(run: Job) -> None:
    run.behave(crash=[1, 3], code=42)
    job = run.submit()
    assert run.wait(job) == "FAILED"
    assert run.exit_code(job) == 42, run.log(job)
    assert leftovers(job) == []
    again = run.submit()
    assert run.wait(again) == "COMPLETED", run.log(again)
    assert "starts from checkpoint iter_0000001; 4 of 6 rollouts remain" in run.log(again)
    rows = read_rows(run.folder / "metrics" / "rollout.jsonl")
    assert [(row["step"], row["attempt"], row.get("again", False)) for row in rows] == [
        (0, 1, False),
        (1, 1, False),
        (2, 1, False),
        (2, 2, True),
        (3, 2, False),
        (4, 2, False),
        (5, 2, False),
    ]


def test_a_lost_raylet_ends_the_job(run: Job) -> None:
    run.behave(hang=[1, 2])
    job = run.submit()
    run.wait_for(job, "16 GPUs on 2 nodes")
    raylets = [pid for pid, words in processes(job) if "raylet/raylet" in words]
    assert len(raylets) == 2
    worker = next(pid for pid in raylets if b"SLURMD_NODENAME=n2" in environ(pid))
    os.kill(worker, signal.SIGKILL)
    assert run.wait(job) == "FAILED"
    assert run.exit_code(job) != 0
    assert "Ray ended on a node" in run.log(job)
    assert leftovers(job) == []


def test_scancel_leaves_nothing(run: Job) -> None:
    run.behave(hang=[1, 2])
    job = run.submit()
    run.wait_for(job, "16 GPUs on 2 nodes")
    run.cluster.run("scancel", job)
    assert run.wait(job) == "CANCELLED"
    until(lambda: leftovers(job) == [], lambda: leftovers(job))


def test_a_job_told_to_stop_saves_and_goes_on_by_itself(run: Job) -> None:
    run.behave(step_s=1.0)
    job = run.submit()
    run.wait_for(job, "16 GPUs on 2 nodes")
    until(lambda: len(read_rows(run.folder / "metrics" / "rollout.jsonl")) >= 1)
    run.cluster.run("scancel", "--batch", "--signal=USR1", job)
    run.wait_for(job, "back to the queue")
    run.behave()
    # SLURM holds a requeued job back for two minutes; a node refuses one that comes at once, with
    # "credential revoked".
    run.wait(job, "PENDING")
    run.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now+4", check=False)
    assert run.wait(job) == "COMPLETED", run.log(job)
    log = run.log(job)
    saved = int(re.search(r"saved up to rollout (\d+) on request", log)[1])
    assert f"starts from checkpoint iter_{saved:07d}; {5 - saved} of 6 rollouts remain" in log
    rows = read_rows(run.folder / "metrics" / "rollout.jsonl")
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert not any(row.get("again") for row in rows)
    assert leftovers(job) == []


def test_a_node_that_never_comes_up_is_named(run: Job) -> None:
    recipe = run.recipe.read_text()
    run.recipe.write_text(
        recipe.replace("ready_timeout_s = 380", "ready_timeout_s = 90").replace(
            "[cluster]", '[cluster]\nsetup = ["[ \\"${SLURMD_NODENAME:-}\\" != n2 ] || sleep 600"]'
        )
    )
    job = run.submit()
    assert run.wait(job) == "FAILED"
    assert "these nodes have not joined Ray: n2" in run.log(job)
    assert run.exit_code(job) == 2
    assert leftovers(job) == []


def test_two_jobs_share_the_nodes_and_a_stale_ray_disturbs_neither(cluster, tmp_path: Path) -> None:
    stale = start_stale_ray(tmp_path)
    try:
        runs = [make_run(cluster, tmp_path, nodes=1, name=name) for name in ("one", "two")]
        for run in runs:
            half = 'nodes = 1\nexclusive = false\ngpus_per_node = 4\nsbatch = ["--nodelist=n1"]'
            text = run.recipe.read_text().replace("nodes = 1", half).replace("pp = 2", "pp = 1")
            text += "\n[engine]\ngpus = 4\n"
            run.recipe.write_text(text)
            run.behave(step_s=1.0)
        jobs = [run.submit() for run in runs]
        for run, job in zip(runs, jobs, strict=True):
            run.wait_for(job, "4 GPUs on 1 nodes")
        assert [run.field(job, "JobState") for run, job in zip(runs, jobs, strict=True)] == [
            "RUNNING",
            "RUNNING",
        ]
        for run, job in zip(runs, jobs, strict=True):
            assert run.wait(job) == "COMPLETED", run.log(job)
            assert leftovers(job) == []
        assert stale.poll() is None
    finally:
        stale.terminate()
        stale.wait(timeout=60)


def test_keys_appear_nowhere(run: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-never-to-be-seen-4711"
    file = run.recipe.parent / "keys"
    file.write_text(f"JUDGE_KEY={secret}\n")
    file.chmod(0o600)
    run.recipe.write_text(
        run.recipe.read_text().replace(
            "[cluster]", f'[cluster]\nsecrets = ["JUDGE_KEY"]\nsecrets_file = "{file}"'
        )
    )
    run.behave(hang=[1, 2], print_variable="JUDGE_KEY")
    job = run.submit()
    run.wait_for(job, "16 GPUs on 2 nodes")
    assert f"JUDGE_KEY has {len(secret)} characters" in run.log(job)
    words = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True).stdout
    assert secret not in words
    listed = ray_jobs(run, job)
    assert "standin" in listed
    assert secret not in listed
    run.cluster.run("scancel", job)
    run.wait(job)
    for path in run.folder.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes(), path


def test_the_embedded_backend_trains_under_sbatch(cluster, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "lab"
    recipe = Path(__file__).parents[2] / "configs" / "embedded" / "lab.toml"
    run = Job(cluster, folder, recipe, tmp_path)
    small = ("rollout.steps=2", "data.options.eval_rows=8", "data.options.rows=64")
    python = f"cluster.python={sys.executable}"
    job = run.submit(*(word for key in (*small, python) for word in ("--set", key)))
    assert run.wait(job) == "COMPLETED", run.log(job)
    assert json.loads((folder / "summary.json").read_text())["steps"] == 2


def processes(job: str) -> list[tuple[int, str]]:
    """Processes of a job with their command lines."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            words = b""
            try:
                words = (folder / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if f"/tmp/longrl-{job}/".encode() in words:
                found.append((int(folder.name), words.replace(b"\0", b" ").decode()))
    return found


def environ(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")


def until(condition: Callable[[], bool], what: Callable[[], object] = str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.3)


def start_stale_ray(folder: Path) -> subprocess.Popen[bytes]:
    """A Ray of somebody else on the default port."""
    environment = {**os.environ, "RAY_AUTH_MODE": "disabled"}
    environment.pop("RAY_ADDRESS", None)
    words = ["start", "--head", "--block", "--num-gpus=0", "--num-cpus=1", "--port=6379"]
    command = [sys.executable, "-m", "ray.scripts.scripts", *words, "--include-dashboard=false"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    time.sleep(5)
    assert process.poll() is None
    return process


def ray_jobs(run: Job, job: str) -> str:
    """What `ray job list` shows of a running job."""
    port = 20000 + int(job) % 640 * 16 + 1
    environment = {
        **os.environ,
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(run.folder / f".token-{job}"),
    }
    command = [sys.executable, "-m", "ray.scripts.scripts", "job", "list"]
    command += ["--address", f"http://127.0.0.1:{port}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr
