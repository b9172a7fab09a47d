"""Starts, watches and restarts a rollout engine as a child process.

One design choice: an engine keeps nothing that its model folder does not hold, so a crash is
handled by starting again from the weights pushed last, on the same address.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Self

import httpx

import slime_ext
from slime_ext.embedded.engine import lifeline
from slime_ext.embedded.engine.usage import tree_cpu_seconds
from slime_ext.errors import ExplainedError

_POLL_S = 0.05
_UPDATE_TIMEOUT_S = 600.0
"""An update waits for the running wave."""
_TAIL_BYTES = 2000


class EngineDownError(ExplainedError, RuntimeError):
    """The engine's process is not there or does not answer; `restart()` brings it back."""


class ServerProcess(ABC):
    """A child process that serves SGLang's endpoints. Use as a context manager or call `stop`.

    A folder given to `update_weights` must stay as it is until the next one: a restart reads it.
    """

    start_timeout_s: ClassVar[float]
    stop_grace_s: ClassVar[float]

    def __init__(self, model_folder: Path, batch: int, log: Path) -> None:
        """`batch` responses are sampled together at most; output is appended to `log`."""
        self._folder = model_folder
        self._version = "0"
        self._batch = batch
        self._log = log
        self._port: int | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._spent_before = self._spent_seen = 0.0

    @abstractmethod
    def _command(self, folder: Path, version: str, port: int) -> list[str]:
        """The command that serves `folder` as weight version `version` on loopback `port`."""

    @abstractmethod
    def _environment(self) -> dict[str, str]:
        """The child's whole environment."""

    @property
    def url(self) -> str:
        """Address of the engine, kept over restarts. Raises EngineDownError before `start`."""
        if self._port is None:
            raise EngineDownError("the engine was never started; call start()")
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> str:
        """Start the process and wait until it serves; its address.

        Raises EngineDownError with the end of the log where it ends or is not ready in time.
        """
        if self.alive():
            return self.url
        while True:
            self._port = self._port or _free_port()
            self._spawn(self._port)
            if self._wait_ready():
                return self.url
            self._reap()
            tail = self._tail()
            if "address already in use" not in tail.lower():
                raise EngineDownError(
                    f"{type(self).__name__} did not come up; the end of {self._log}:\n{tail}"
                )
            self._port = None

    def alive(self) -> bool:
        """Whether the process runs (a busy engine may still answer late)."""
        return self._child is not None and self._child.poll() is None

    def restart(self) -> str:
        """Start again with the weights pushed last, dead or alive; the address."""
        self.stop()
        return self.start()

    def update_weights(self, folder: Path, version: int) -> None:
        """Serve the Hugging Face folder from the next wave on, as weight version `version`.

        Raises ValueError where the engine refuses the folder (the old weights stay), and
        EngineDownError where it does not answer; a restart then serves `folder`.
        """
        body = {"model_path": str(folder.resolve()), "weight_version": str(version)}
        path = "/update_weights_from_disk"
        try:
            answer = httpx.post(self.url + path, json=body, timeout=_UPDATE_TIMEOUT_S)
        except httpx.TransportError as error:
            self._folder, self._version = folder, str(version)
            raise EngineDownError(
                f"the engine did not take weight version {version} ({error!r}); call restart()"
            ) from error
        if answer.status_code != httpx.codes.OK or not answer.json().get("success"):
            raise ValueError(f"the engine refused {folder}: {answer.text}")
        self._folder, self._version = folder, str(version)

    def stop(self) -> None:
        """End the process and its children; nothing happens where it has ended."""
        if self._child is None:
            return
        self.cpu_seconds()
        if self.alive():
            os.killpg(self._child.pid, signal.SIGTERM)
            try:
                self._child.wait(self.stop_grace_s)
            except subprocess.TimeoutExpired:
                os.killpg(self._child.pid, signal.SIGKILL)
        self._reap()

    def cpu_seconds(self) -> float:
        """CPU time of this engine's processes so far, earlier incarnations included; of one that
        crashed, what was seen at the last call."""
        if self._child is not None and self.alive():
            self._spent_seen = tree_cpu_seconds(self._child.pid)
        return self._spent_before + self._spent_seen

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def _spawn(self, port: int) -> None:
        self._reap()
        self._log.parent.mkdir(parents=True, exist_ok=True)
        command = self._command(self._folder.resolve(), self._version, port)
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                start_new_session=True,
            )

    def _wait_ready(self) -> bool:
        """Whether the child serves our folder before its deadline. The folder is compared because
        the port was chosen before the child bound it: another server may have been faster."""
        deadline = time.monotonic() + self.start_timeout_s
        while self.alive() and time.monotonic() < deadline:
            try:
                if httpx.get(self.url + "/health", timeout=30).status_code == httpx.codes.OK:
                    served = httpx.get(self.url + "/model_info", timeout=30).json()["model_path"]
                    return self.alive() and served == str(self._folder.resolve())
            except httpx.TransportError:
                pass
            time.sleep(_POLL_S)
        return False

    def _reap(self) -> None:
        """Close the lifeline, kill what is left of the process group, and collect the child."""
        if self._child is None:
            return
        if self._child.stdin is not None:
            self._child.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        self._child = None
        self._spent_before += self._spent_seen
        self._spent_seen = 0.0

    def _tail(self) -> str:
        return self._log.read_bytes()[-_TAIL_BYTES:].decode(errors="replace")


class EngineProcess(ServerProcess):
    """The builtin engine as a child process."""

    start_timeout_s = 120.0
    stop_grace_s = 1.0

    def _command(self, folder: Path, version: str, port: int) -> list[str]:
        server = [
            *lifeline_command(Path(sys.executable), "slime_ext.embedded.engine.server"),
            *("--model", str(folder), "--weight-version", version),
        ]
        return [*server, "--port", str(port), "--batch", str(self._batch)]

    def _environment(self) -> dict[str, str]:
        # -P (see lifeline.py) leaves the working directory out, so a source tree is named here.
        root = str(Path(slime_ext.__file__).parents[1])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
        return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}


def lifeline_command(python: Path, module: str) -> list[str]:
    """Run `module` so that it ends with this process."""
    return [str(python), "-P", str(lifeline.__file__), module]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
