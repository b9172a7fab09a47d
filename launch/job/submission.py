"""The training program as a Ray job: submitted, followed, its exit code handed on.

One design choice: Ray's own job server runs the program, on the head node with Ray's environment,
so that keys reach it by inheritance and never by the job's runtime environment, which anybody can
list.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from slime_ext.errors import ExplainedError

SUBMIT_S = 120.0
"""How long the job server may take to come up after Ray itself."""


class JobLostError(ExplainedError):
    """Ray lost the program without an exit code."""


class RayJob:
    """One submitted program."""

    def __init__(
        self, dashboard: str, command: Sequence[str], variables: Mapping[str, str]
    ) -> None:
        """Submit `command`; `variables` hold no secret, they are shown by `ray job list`."""
        self._client = _client(dashboard)
        self.id = self._client.submit_job(
            entrypoint=shlex.join(command), runtime_env={"env_vars": dict(variables)}
        )

    def follow(self, out: TextIO, watch: Callable[[], int | None], every_s: float = 2.0) -> int:
        """Copy the program's output to `out` until it ends; its exit code.

        `watch` is asked every `every_s` seconds; a number from it is returned at once, and the
        program goes on: whoever ends the job can look into it first.

        Raises JobLostError where Ray lost the program.
        """
        return asyncio.run(self._follow(out, watch, every_s))

    async def _follow(self, out: TextIO, watch: Callable[[], int | None], every_s: float) -> int:
        copying = asyncio.create_task(self._copy(out))
        while not self._client.get_job_status(self.id).is_terminal():
            verdict = await asyncio.to_thread(watch)
            if verdict is not None:
                copying.cancel()
                return verdict
            await asyncio.wait([copying], timeout=every_s)
            if copying.done():
                await asyncio.sleep(0.2)
        await asyncio.wait([copying], timeout=10)
        copying.cancel()
        return self._exit_code()

    async def _copy(self, out: TextIO) -> None:
        async for lines in self._client.tail_job_logs(self.id):
            out.write(lines)
            out.flush()

    def _exit_code(self) -> int:
        from ray.job_submission import JobStatus

        details = self._client.get_job_info(self.id)
        if details.status == JobStatus.SUCCEEDED:
            return 0
        if details.driver_exit_code is None:
            raise JobLostError(f"Ray lost the training program: {details.message}")
        return int(details.driver_exit_code) or 1


def _client(dashboard: str):  # type: ignore[no-untyped-def]
    """A client of Ray's job server, once it answers."""
    from ray.job_submission import JobSubmissionClient

    deadline = time.monotonic() + SUBMIT_S
    while True:
        try:
            return JobSubmissionClient(dashboard)
        except ConnectionError as error:
            if time.monotonic() > deadline:
                raise JobLostError(
                    f"Ray's job server at {dashboard} does not answer after {SUBMIT_S:g} s: {error}"
                ) from None
            time.sleep(1)
