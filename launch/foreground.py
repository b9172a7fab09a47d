"""slime's train.py as a child of this process, inside an allocation that somebody holds.

One design choice: the child has a session of its own and gets this process's SIGINT and SIGTERM, so
that Ctrl-C in a terminal reaches it once and this process lives to report its exit code.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from launch.argument_groups.sampling import write_hook_config
from launch.arguments import command_line, slime_arguments
from launch.flags.check import split
from launch.slurm.environment import attempt_variables, environment
from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import open_run, write_recipe
from slime_ext.metrics.stop_flag import StopFlag, exit_code
from slime_ext.metrics.trainer_rows import TrainerRows
from slime_ext.recipe.schema import Recipe

FORWARDED = (signal.SIGINT, signal.SIGTERM)
LOOK_EVERY_S = 5.0


class NoHostError(ExplainedError, FileNotFoundError):
    """slime is not where the recipe says."""


def train_in_foreground(asked: Recipe, root: Path, fresh: bool) -> int:
    """Write the run folder of `asked` under `root` and run slime's train.py in it.

    A Ray that runs already is used, else slime starts one here. Returns the exit code of train.py,
    128 + N where signal N ended it; 75 where it saved on request, 76 for an alarm. Raises
    NoHostError, and as `slime_arguments` and `open_run`.
    """
    program = Path(asked.slime.path) / "train.py"
    if not program.is_file():
        raise NoHostError(
            f"slime.path = {asked.slime.path!r} holds no train.py on this machine; run inside the "
            "slime image, name a checkout of slime, or type --dry-run to see the command"
        )
    from slime_ext.embedded.builtin import resolve, write_data  # torch: seconds to import

    recipe = resolve(asked, root.absolute() / asked.name)
    slime_arguments(recipe, root.absolute() / recipe.name)
    folder, attempt = open_run(root.absolute(), recipe, fresh)
    write_data(asked, recipe)
    write_recipe(folder, recipe)
    write_hook_config(folder.path)
    variables = {one.name: one.value for one in environment(recipe, folder.path)}
    if "PYTHONPATH" in os.environ:
        variables["PYTHONPATH"] += f":{os.environ['PYTHONPATH']}"
    stop = StopFlag(folder.path)
    stop.clear()
    child = subprocess.Popen(
        command_line(recipe, folder.path),
        env={**os.environ, **variables, **attempt_variables(recipe, folder.path, attempt)},
        start_new_session=True,
    )
    with forwarded_to(child):
        code = _follow(child, TrainerRows(folder, recipe.rollout.updates, attempt))
    if stop.saved_step() is not None:
        print(f"saved up to rollout {stop.saved_step()} on request of {stop.asked()}")
        return exit_code(stop.asked())
    return 128 - code if code < 0 else code


def shown(recipe: Recipe, run: Path) -> str:
    """The command as text that a shell takes: variables, program, one flag a line."""
    variables = {one.name: one.value for one in environment(recipe, run.absolute())}
    program = command_line(recipe, run)[:2]
    lines = ["env", *(shlex.quote(f"{name}={value}") for name, value in variables.items())]
    lines.append(shlex.join(program))
    for argv in slime_arguments(recipe, run).values():
        lines += [shlex.join([one.flag, *one.values]) for one in split(argv)]
    return " \\\n    ".join(lines)


def _follow(child: subprocess.Popen[Any], trainer: TrainerRows) -> int:
    """Wait for `child`, bringing in its trainer's metrics meanwhile; its return code."""
    while True:
        try:
            code = child.wait(LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            trainer.look()
        else:
            trainer.finish()
            return code


@contextmanager
def forwarded_to(child: subprocess.Popen[Any]) -> Iterator[None]:
    """While the body runs, `child` gets the SIGINT and SIGTERM that this process is sent."""

    def forward(number: int, _: object) -> None:
        child.send_signal(number)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
