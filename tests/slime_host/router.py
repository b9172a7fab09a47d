"""The real sglang-router as a child process."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

START_S = 60


@contextlib.contextmanager
def router(workers: Sequence[str], log: Path) -> Iterator[str]:
    """Address of a router before `workers`, up until the block ends."""
    port, metrics = _free_ports()
    command = [sys.executable, "-m", "sglang_router.launch_router", "--worker-urls", *workers]
    command += ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(metrics)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(url, process, len(workers), log)
        yield url
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], workers: int, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            answer = httpx.get(f"{url}/workers")
            if answer.is_success and len(answer.json()["workers"]) == workers:
                return
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        return one.getsockname()[1], two.getsockname()[1]
