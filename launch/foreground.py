"""A run inside an allocation that somebody holds: the job's own script, started here.

One design choice: the script that `longrl submit` hands to sbatch is run by bash instead, so that
Ray, resume, watchdog and sweep are the same; on one node its parts start without srun.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from launch.arguments import command_line, slime_arguments
from launch.flags.check import split
from launch.slurm.environment import environment
from launch.slurm.queue import SCRIPT
from launch.slurm.submit import prepare_job
from slime_ext.errors import ExplainedError
from slime_ext.recipe.schema import Recipe

FORWARDED = (signal.SIGINT, signal.SIGTERM)
FIRST_LOCAL = 90_000_000
"""Above every job id of SLURM (2 to the 26th): runs without a job are numbered from here."""


class NoHostError(ExplainedError, FileNotFoundError):
    """slime is not where the recipe says."""


class NoAllocationError(ExplainedError):
    """The run needs more nodes than are here."""


def train_in_foreground(asked: Recipe, root: Path, fresh: bool) -> int:
    """Write the run folder of `asked` under `root` and run its job script here, to the end.

    The first SIGINT or SIGTERM asks the run to save and stop, the second ends it. Returns the
    script's exit code: that of train.py, 75 where it saved on request, 76 for an alarm. Raises
    NoHostError, NoAllocationError, and as `prepare_job`.
    """
    program = Path(asked.slime.path) / "train.py"
    if not program.is_file():
        raise NoHostError(
            f"slime.path = {asked.slime.path!r} holds no train.py on this machine; run inside the "
            "slime image, name a checkout of slime, or type --dry-run to see the command"
        )
    variables = _place(asked)
    # Nothing here puts the allocation back into a queue.
    cluster = asked.cluster.model_copy(update={"requeue": False})
    folder = prepare_job(asked.model_copy(update={"cluster": cluster}), root.absolute(), fresh)
    child = subprocess.Popen(
        ["bash", str(folder.path / SCRIPT)],
        env={**os.environ, **variables},
        start_new_session=True,
    )
    with _stopping(child):
        code = child.wait()
    return 128 - code if code < 0 else code


def _place(recipe: Recipe) -> dict[str, str]:
    """Variables that tell the script where to run: over the allocation's nodes, or here alone."""
    nodes = recipe.cluster.nodes + sum(one.own_node for one in recipe.cluster.services)
    if nodes == 1:
        return {
            "LONGRL_LOCAL": platform.node(),
            "SLURM_JOB_ID": str(local_job(os.getpid())),
            "SLURMD_NODENAME": platform.node(),
            "SLURM_NODEID": "0",
        }
    if "SLURM_JOB_NODELIST" not in os.environ or shutil.which("srun") is None:
        raise NoAllocationError(
            f"the recipe needs {nodes} nodes and this is no SLURM allocation; type `longrl submit "
            f"RECIPE`, or salloc --nodes={nodes} first"
        )
    return {}


def local_job(pid: int) -> int:
    """The number of a run without a job. Its ports follow from it modulo 640: only the last quarter
    is used, far from the jobs of a small cluster on the same machine."""
    return FIRST_LOCAL + pid // 160 * 640 + 480 + pid % 160


def shown(recipe: Recipe, run: Path) -> str:
    """The command as text that a shell takes: variables, program, one flag a line."""
    variables = {one.name: one.value for one in environment(recipe, run.absolute())}
    program = command_line(recipe, run)[:2]
    lines = ["env", *(shlex.quote(f"{name}={value}") for name, value in variables.items())]
    lines.append(shlex.join(program))
    for argv in slime_arguments(recipe, run).values():
        lines += [shlex.join([one.flag, *one.values]) for one in split(argv)]
    return " \\\n    ".join(lines)


@contextmanager
def _stopping(child: subprocess.Popen[Any]) -> Iterator[None]:
    """While the body runs, the first signal is a request to save and the next the end."""
    seen: list[int] = []

    def handle(number: int, _: object) -> None:
        child.send_signal(signal.SIGTERM if seen else signal.SIGUSR1)
        seen.append(number)

    with _handled(handle):
        yield


@contextmanager
def forwarded_to(child: subprocess.Popen[Any]) -> Iterator[None]:
    """While the body runs, `child` gets the SIGINT and SIGTERM that this process is sent."""

    def forward(number: int, _: object) -> None:
        child.send_signal(number)

    with _handled(forward):
        yield


@contextmanager
def _handled(handler: Any) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in FORWARDED}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
