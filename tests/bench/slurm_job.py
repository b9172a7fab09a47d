"""How fast a job on SLURM starts, how fast a crash ends it, and how many restarts a run survives.

Real SLURM and real Ray on this one machine (four nodes of eight pretended GPUs), a trainer that
learns one number. Prints `skipped REASON` where SLURM is absent or this is not root.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from slime_ext.metrics.records import last_rows, read_rows
from tests.slurm.cluster import missing_programs, slurm_cluster
from tests.slurm.conftest import Job, make_run

STEPS = 16
CRASHES = [[1, 3], [3, 7], [5, 11]]
"""Attempt and step of each; the attempts between are stopped on request."""


def moment(run: Job, job: str, text: str) -> float:
    """When `text` came into the job's log."""
    while text not in run.log(job):
        if run.field(job, "JobState") in ("COMPLETED", "FAILED", "CANCELLED"):
            raise SystemExit(f"{text!r} never came:\n{run.log(job)}")
        time.sleep(0.05)
    return time.monotonic()


def start_and_crash(run: Job) -> None:
    """Figures of one job on four nodes."""
    run.behave(crash=[1, 2], code=42)
    job = run.submit()
    started = moment(run, job, "starts on")
    ready = moment(run, job, "Ray is ready")
    print(f"figure slurm_ray_32_gpus_ready_s {ready - started:.1f}", flush=True)
    crashed = moment(run, job, "crashing as told")
    assert run.wait(job) == "FAILED", run.log(job)
    print(f"figure slurm_crash_to_job_end_s {time.monotonic() - crashed:.1f}", flush=True)
    assert run.exit_code(job) == 42, run.log(job)


def restarts(run: Job) -> None:
    """Figures of one run that crashes and is stopped in turn, against one that is left alone."""
    path = run.folder / "metrics" / "rollout.jsonl"
    run.behave(step_s=1.0, crashes=CRASHES, code=42)
    for stopped in (2, 4, 6):
        job = run.submit()
        assert run.wait(job) == "FAILED", run.log(job)
        job = run.submit()
        while stopped not in {row["attempt"] for row in read_rows(path)}:
            time.sleep(0.2)
        run.cluster.run("scancel", "--batch", "--signal=USR1", job)
        run.wait(job, "PENDING")
        if stopped < 6:
            run.cluster.run("scancel", job)
            run.wait(job)
        else:
            run.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now+4")
            assert run.wait(job) == "COMPLETED", run.log(job)
    merged = {step: row["reward/total"] for step, row in last_rows(path).items()}
    whole, value = {}, 0.0
    for step in range(STEPS):
        value = 0.9 * value + step
        whole[step] = value
    survived = max(row["attempt"] for row in read_rows(path)) - 1
    print(f"figure slurm_restarts_survived {survived if merged == whole else 0}", flush=True)


def main() -> int:
    missing = missing_programs()
    if missing or os.geteuid() != 0:
        print(f"skipped {', '.join(missing) or 'root'} needed: apt-get install slurm-wlm munge")
        return 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        with slurm_cluster(root / "slurm") as cluster:
            start_and_crash(make_run(cluster, root, nodes=4, name="start"))
            run = make_run(cluster, root, nodes=1, name="restarts")
            text = run.recipe.read_text().replace("steps = 6", f"steps = {STEPS}")
            run.recipe.write_text(text.replace("pp = 2", "pp = 1"))
            restarts(run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
