"""Whole runs of the lab recipe in processes of their own, as a user starts them.

All runs have the same recipe and seed, so all must end with the same figures.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slime_ext.metrics.records import last_rows, read_rollouts

ROOT = Path(__file__).parents[2]
NOT_COMPARED = {
    "dataset",
    "time",
    "attempt",
    "again",
    "cpu_seconds",
    "wall_seconds",
    "seconds",
}
STEPS = 6
SETTINGS = [
    f"rollout.steps={STEPS}",
    "rollout.prompts=4",
    "rollout.updates=2",
    "data.options.rows=40",
    "data.options.eval_rows=8",
    "eval.every=3",
    "checkpoint.every=2",
]


def command(runs: Path, *extra: str) -> list[str]:
    sets = [word for setting in (*SETTINGS, *extra) for word in ("--set", setting)]
    recipe = str(ROOT / "configs" / "embedded" / "lab.toml")
    return [sys.executable, "-m", "launch.cli.main", "train", recipe, "--runs", str(runs), *sets]


def start(runs: Path, *extra: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(runs, *extra),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    output, _ = process.communicate(timeout=240)
    assert process.returncode == code, output
    return output


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str]) -> Any:
    """The first true value of `condition`, polled while the process runs."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        if value := condition():
            return value
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    raise AssertionError("waited in vain")


def trained_steps(run: Path) -> int:
    return len(last_rows(run / "metrics" / "train.jsonl"))


def engine_pid(run: Path) -> int | None:
    """Process id of the engine whose log is in this run folder."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().decode().split("\0")
            output = os.readlink(path / "fd" / "1")
        except OSError:
            continue
        if "slime_ext.embedded.engine.server" in " ".join(words) and str(run) in output:
            return int(path.name)
    return None


def figures(run: Path) -> dict[str, list[dict[str, Any]]]:
    """The newest row of every step of every record, without clock and attempt."""
    found = {}
    for stream in ("rollout", "train", "eval"):
        rows = last_rows(run / "metrics" / f"{stream}.jsonl").values()
        found[stream] = [{k: v for k, v in row.items() if _compared(k)} for row in rows]
    return found


def _compared(key: str) -> bool:
    return key not in NOT_COMPARED and not key.startswith(("judge/", "engine/"))


def order(run: Path) -> list[list[str]]:
    """Row ids of every step, in the order in which they were drawn."""
    return [
        [row["id"] for row in read_rollouts(run / "rollouts" / f"step_{step}.jsonl.zst")]
        for step in range(STEPS)
    ]


def assert_same_run(run: Path, reference: Path) -> None:
    assert order(run) == order(reference)
    got, wanted = figures(run), figures(reference)
    for stream, rows in wanted.items():
        assert len(got[stream]) == len(rows)
        for mine, theirs in zip(got[stream], rows, strict=True):
            assert mine == pytest.approx(theirs, rel=1e-5, abs=1e-5), stream
