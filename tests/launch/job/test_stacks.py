"""Stacks of the processes that bear the job's mark, and of no others."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch.job.stacks import MARK, marked_processes, save_stacks

SLEEPER = """
import time
def wait_for_ever():
    print("here", flush=True)
    time.sleep(600)
wait_for_ever()
"""


def start(job: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER],
        env={**os.environ, MARK: job},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[str]]]:
    """Two processes of job t-1 and one of job t-12."""
    made = [start("t-1"), start("t-1"), start("t-12")]
    yield made
    for one in made:
        one.kill()
        one.wait()


def test_the_function_that_hangs_is_named(
    sleepers: list[subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, "t-1")
    monkeypatch.setenv("SLURMD_NODENAME", "n3")
    assert marked_processes("t-1") == sorted(one.pid for one in sleepers[:2])
    assert save_stacks(tmp_path) == 2
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"stacks_n3.txt", *(f"stacks_n3_{one.pid}.txt" for one in sleepers[:2])}
    for one in sleepers[:2]:
        assert "wait_for_ever" in (tmp_path / f"stacks_n3_{one.pid}.txt").read_text()


def test_without_a_mark_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MARK, raising=False)
    monkeypatch.setenv("SLURMD_NODENAME", "n3")
    assert save_stacks(tmp_path) == 0
    assert "LONGRL_JOB is not set" in (tmp_path / "stacks_n3.txt").read_text()
