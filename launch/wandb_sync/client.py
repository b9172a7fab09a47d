"""wandb's own client as a child process that logs rows and ends in bounded time.

One design choice: a process of its own. wandb waits for its server at the exit of the interpreter
too, without a limit, and only a process can be ended whatever it waits for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slime_ext.errors import ExplainedError

OF_ANOTHER_RUN = frozenset(
    f"WANDB_{name}" for name in ("SERVICE", "MODE", "RUN_ID", "RESUME", "DIR", "NAME", "TAGS")
)
"""Variables that would name or move the run, or join a running helper process of wandb."""


class ClientError(ExplainedError):
    """wandb's client did not get its rows across; the message has its last words."""


@dataclass(frozen=True, slots=True)
class Job:
    """One upload: the arguments of `wandb.init`, and the rows as (step, values)."""

    init: dict[str, Any]
    settings: dict[str, Any]
    rows: list[tuple[int, dict[str, float]]]
    summary: dict[str, Any]


def run_client(job: Job, environment: dict[str, str], limit_s: float) -> dict[str, Any]:
    """Log the rows of `job`; what the child reports: `skipped` rows the server had already.

    Raises ClientError where it fails or takes longer than `limit_s` seconds.
    """
    inherited = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER_RUN}
    with tempfile.TemporaryDirectory(prefix="longrl-sync-") as folder:
        told, report = Path(folder) / "job.json", Path(folder) / "report.json"
        init = {"dir": folder, **job.init}
        told.write_text(json.dumps([init, job.settings, job.rows, job.summary]))
        command = [sys.executable, "-m", __name__, str(told), str(report)]
        child = subprocess.Popen(
            command,
            env=inherited | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            words, _ = child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            words, _ = child.communicate()
            raise ClientError(
                f"W&B did not take the rows within {limit_s:g} s; what arrived is kept there, and "
                f"the same command goes on. Its client said:\n{_last(words)}"
            ) from None
        if child.returncode or not report.is_file():
            raise ClientError(f"wandb's client failed:\n{_last(words)}")
        found: dict[str, Any] = json.loads(report.read_text())
        return found


def _last(words: str) -> str:
    return "\n".join(words.strip().splitlines()[-5:])


def main(told: Path, report: Path) -> None:
    """The child: log what is new, say what was skipped."""
    import wandb

    from slime_ext.metrics.wandb_run import define_axes

    init, settings, rows, summary = json.loads(told.read_text())
    run = wandb.init(**init, settings=wandb.Settings(**settings))
    define_axes(run)
    # The server knows best what it has: wandb would drop these, and say so once a row.
    have = run.starting_step
    for step, values in rows:
        if step >= have:
            run.log(values, step=step)
    run.summary.update(summary)
    run.finish()
    skipped = sum(step < have for step, _ in rows)
    report.write_text(json.dumps({"skipped": skipped, "url": run.url}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
