"""The engine as a child process: life, death and restart."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import slime_ext
from slime_ext.embedded.engine.process import EngineDownError, EngineProcess
from slime_ext.embedded.engine.usage import tree_cpu_seconds

ROOT = Path(slime_ext.__file__).parents[1]


@pytest.fixture
def engine(folder, tmp_path) -> Iterator[EngineProcess]:
    process = EngineProcess(folder, batch=8, log=tmp_path / "logs" / "engine.log")
    with process:
        yield process


def greedy(engine: EngineProcess) -> tuple[list[int], str]:
    body = {"input_ids": [5, 6], "sampling_params": {"temperature": 0, "max_new_tokens": 20}}
    answer = httpx.post(engine.url + "/generate", json=body, timeout=60).json()
    return answer["output_ids"], answer["meta_info"]["weight_version"]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_killed_engine_comes_back_with_the_weights_pushed_last(engine, folder, make_model):
    other, _ = make_model(seed=1)
    url, (first, version) = engine.url, greedy(engine)
    assert version == "0"
    engine.update_weights(other, 5)
    pushed, version = greedy(engine)
    assert pushed != first
    assert version == "5"
    spent = engine.cpu_seconds()
    assert spent > 0.1
    os.kill(engine._child.pid, signal.SIGKILL)
    wait_until(lambda: not engine.alive())
    with pytest.raises(EngineDownError, match="restart"):
        engine.update_weights(folder, 6)
    assert engine.restart() == url
    assert engine.alive()
    assert greedy(engine) == (first, "6")
    assert engine.cpu_seconds() > spent


def test_a_refused_update_is_an_error_and_changes_nothing(engine, make_model):
    untied, _ = make_model(tied=False)
    before = greedy(engine)
    with pytest.raises(ValueError, match="another shape"):
        engine.update_weights(untied, 3)
    assert greedy(engine) == before
    engine.restart()
    assert greedy(engine) == before


def test_a_folder_that_cannot_be_served_shows_the_log(folder, tmp_path):
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    (broken / "model.safetensors").unlink()
    process = EngineProcess(broken, batch=8, log=tmp_path / "engine.log")
    with pytest.raises(EngineDownError, match=r"model\.safetensors is missing"):
        process.start()
    assert not process.alive()
    process.stop()


def test_the_engine_ends_when_its_parent_is_killed(folder, tmp_path):
    program = (
        "import time; from pathlib import Path;"
        "from slime_ext.embedded.engine.process import EngineProcess;"
        f"p = EngineProcess(Path({str(folder)!r}), 8, Path({str(tmp_path / 'log')!r}));"
        "p.start(); print(p._child.pid, flush=True); time.sleep(600)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert Path(f"/proc/{pid}").exists()
        parent.kill()
    wait_until(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    """A process that nobody has collected yet no longer runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_cpu_seconds_include_children():
    # The kernel counts ticks of 10 ms and rounds user and system time down, so
    # the bound is well below what was burnt and well above the parent's own.
    burn = "import time\nwhile time.process_time() < 0.6: pass\n"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}]); input()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        wait_until(lambda: tree_cpu_seconds(child.pid) > 0.45)
    assert tree_cpu_seconds(child.pid) == 0.0


def test_an_engine_that_was_never_started_says_so(folder, tmp_path):
    process = EngineProcess(folder, batch=8, log=tmp_path / "log")
    assert not process.alive()
    assert process.cpu_seconds() == 0.0
    with pytest.raises(EngineDownError, match="start"):
        _ = process.url
    process.stop()
