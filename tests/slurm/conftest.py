"""A SLURM cluster for the tests of a session, and runs submitted to it as a user would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.slurm.cluster import SlurmCluster, missing_programs, slurm_cluster

ROOT = Path(__file__).parents[2]
WAIT_S = 420.0
"""Ray on four "nodes" of two shared cores takes up to a minute to come up."""
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    missing = missing_programs()
    if missing:
        pytest.skip(f"SLURM is not installed ({', '.join(missing)}): apt-get install slurm-wlm")
    if os.geteuid() != 0:
        pytest.skip("starting slurmd needs root")
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@dataclass
class Job:
    """One run on the cluster."""

    cluster: SlurmCluster
    folder: Path
    recipe: Path
    standin: Path

    def longrl(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """The `longrl` command, with SLURM on the path."""
        bin_folder = Path(sys.executable).parent
        environment = {
            **self.cluster.environment,
            "PATH": f"{bin_folder}:{self.cluster.environment['PATH']}",
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "launch.cli.main", *words]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=check, timeout=120
        )

    def submit(self, *options: str) -> str:
        """Submit the run; returns the job's id."""
        self.longrl("submit", str(self.recipe), "--runs", str(self.folder.parent), *options)
        return (self.folder / "jobs.txt").read_text().split()[-1]

    def behave(self, **how: Any) -> None:
        """How the stand-in trainer behaves."""
        (self.standin / "behave.json").write_text(json.dumps({"step_s": 0.1, **how}))

    def field(self, job: str, name: str) -> str:
        """One field of `scontrol show job`."""
        shown = self.cluster.run("scontrol", "show", "job", job)
        return shown.partition(f" {name}=")[2].split()[0]

    def wait(self, job: str, state: str | None = None) -> str:
        """Wait until the job has ended, or is in `state`; its state."""
        deadline = time.monotonic() + WAIT_S
        now = ""
        while time.monotonic() < deadline:
            now = self.field(job, "JobState")
            if now == state or (state is None and now in ENDED):
                return now
            time.sleep(0.3)
        raise AssertionError(f"job {job} is {now} after {WAIT_S:g} s:\n{self.log(job)}")

    def wait_for(self, job: str, text: str, count: int = 1) -> str:
        """Wait until `text` stands `count` times in the job's log; the log."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if self.log(job).count(text) >= count:
                return self.log(job)
            time.sleep(0.3)
        raise AssertionError(f"{text!r} does not appear in:\n{self.log(job)}")

    def log(self, job: str) -> str:
        """What the job printed."""
        path = self.folder / "logs" / f"job-{job}.out"
        return path.read_text(errors="replace") if path.is_file() else ""

    def exit_code(self, job: str) -> int:
        """Exit code of the batch script."""
        return int(self.field(job, "ExitCode").partition(":")[0])


def leftovers(job: str) -> list[str]:
    """Processes that bear the job's mark or use its folder, and the folder itself."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environ = (folder / "environ").read_bytes().split(b"\0")
            command = (folder / "cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if f"LONGRL_JOB={job}".encode() in environ or f"/tmp/longrl-{job}/".encode() in command:
            found.append(f"{folder.name}: {command!r}")
    if Path(f"/tmp/longrl-{job}").exists():
        found.append(f"/tmp/longrl-{job}")
    return found


@pytest.fixture
def run(cluster: SlurmCluster, tmp_path: Path) -> Job:
    """A run of the stand-in trainer: two nodes of eight GPUs, six rollouts, a save every two."""
    return make_run(cluster, tmp_path, nodes=2)


def make_run(cluster: SlurmCluster, folder: Path, nodes: int, name: str = "standin") -> Job:
    """A run on `nodes` nodes under `folder`."""
    standin = folder / name / "slime"
    shutil.copytree(Path(__file__).parent / "standin", standin)
    recipe = folder / f"{name}.toml"
    recipe.write_text(RECIPE.format(name=name, nodes=nodes, python=sys.executable, slime=standin))
    job = Job(cluster, folder / "runs" / name, recipe, standin)
    job.behave()
    return job


RECIPE = """name = "{name}"
backend = "slime"

[model]
path = "/nowhere"
facts = "Qwen3-4B-Thinking-2507"

[data]
train = "/nowhere/train.jsonl"
max_prompt_tokens = 8000

[rollout]
steps = 6
prompts = 16
group_size = 8
max_response_tokens = 1000
context_tokens = 16000

[reward]
kind = "outcome"

[optimiser]
lr = 1e-6

[parallel]
tp = 4
pp = 2

[checkpoint]
every = 2

[cluster]
nodes = {nodes}
python = "{python}"
ready_timeout_s = 380

[slime]
path = "{slime}"
megatron_path = "{slime}"
"""
