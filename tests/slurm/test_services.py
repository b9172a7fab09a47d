"""Servers that a job starts beside the training program, on a real SLURM."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.slurm.conftest import Job, leftovers

pytestmark = pytest.mark.timeout(1200)

SERVER = """
import http.server, pathlib, sys, threading, time
host, port, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
time.sleep(2)
server = http.server.HTTPServer((host, port), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
while not (folder / "die").exists():
    time.sleep(0.1)
sys.exit(9)
"""


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def add_service(run: Job, folder: Path, port: int, **settings: object) -> None:
    """A server on a node of its own, or beside Ray."""
    (folder / "server.py").write_text(SERVER)
    command = f'exec "$PYTHON" {folder}/server.py "$HOST" {port} {folder}'
    lines = ["[[cluster.services]]", 'name = "judge"', f"command = '{command}'", f"port = {port}"]
    lines += ['health = "/"', *(f"{key} = {value}" for key, value in settings.items())]
    run.recipe.write_text(run.recipe.read_text() + "\n" + "\n".join(lines) + "\n")


def test_the_run_is_told_where_its_service_answers_and_ends_with_it(
    run: Job, tmp_path: Path, free_port: int
) -> None:
    add_service(run, tmp_path, free_port, own_node="true")
    run.behave(hang=[1, 1], print_variable="LONGRL_SERVICE_JUDGE")
    job = run.submit()
    log = run.wait_for(job, "LONGRL_SERVICE_JUDGE has")
    assert "service judge answers after" in log
    assert "2 nodes, 16 GPUs" in log
    assert run.field(job, "NumNodes") == "3"
    (tmp_path / "die").touch()
    assert run.wait(job) == "FAILED"
    assert run.exit_code(job) == 9
    assert "a service ended" in run.log(job)
    assert leftovers(job) == []
    assert list(run.folder.glob(".service-*")) == []


def test_a_service_beside_ray_takes_gpus_and_one_that_stays_silent_ends_the_job(
    run: Job, tmp_path: Path, free_port: int
) -> None:
    add_service(run, tmp_path, free_port, gpus=4, ready_timeout_s=8)
    text = run.recipe.read_text().replace('health = "/"', 'health = "/nowhere"')
    apart = "[cluster]\ncolocate = false\nrollout_gpus = 4"
    text = text.replace("pp = 2", "pp = 1").replace("[cluster]\n", apart + "\n", 1)
    run.recipe.write_text(text + "\n[engine]\ngpus = 4\n")
    job = run.submit()
    assert run.wait(job) == "FAILED"
    assert run.exit_code(job) == 2
    assert "service judge does not answer" in run.log(job)
    assert "status 404" in run.log(job)
    assert leftovers(job) == []
