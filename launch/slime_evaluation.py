"""Evaluate with slime: its rollout manager as a child process, its engines or running ones.

One design choice: slime never enters this process. The child gets an argument list, no shell; what
it prints is shown and kept; a signal to us ends it, and with it its Ray.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from launch.argument_groups.sampling import write_hook_config
from launch.argument_groups.tracking import environment
from launch.evaluation import evaluation_arguments
from launch.foreground import forwarded_to
from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe

LAUNCHER = "slime_ext.host.evaluate"
LOG = "launcher.log"


def require_slime_here(recipe: Recipe) -> None:
    """Raise ExplainedError where slime is neither importable nor at slime.path."""
    where = Path(recipe.slime.path)
    if importlib.util.find_spec("slime") is None and not (where / "slime").is_dir():
        raise ExplainedError(
            f"slime is not installed in {sys.prefix}, nor is a checkout at slime.path = "
            f"{str(where)!r}; run this in slime's own image, or name a checkout: "
            "--set slime.path=FOLDER (git clone -b v0.3.1 https://github.com/THUDM/slime)"
        )


def evaluate_with_slime(folder: RunFolder, engines: Sequence[str], step: int) -> int:
    """Run the launcher on the prepared `folder`; returns its exit code, 128 + N where signal N
    ended it.

    Writes command.json and launcher.log beside the records, which slime's processes write.
    """
    recipe = load_recipe(folder.recipe).recipe
    arguments = evaluation_arguments(recipe, folder.path, engines, step)
    write_hook_config(folder.path)
    command = [sys.executable, "-m", LAUNCHER, *arguments]
    folder.write_json(folder.path / "command.json", command)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=child_environment(recipe, folder.path, os.environ),
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with child, forwarded_to(child), (folder.path / LOG).open("w") as log:
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="", flush=True)
            log.write(line)
    return 128 - child.returncode if child.returncode < 0 else child.returncode


def child_environment(recipe: Recipe, folder: Path, ours: Mapping[str, str]) -> dict[str, str]:
    """Our own variables and the run's: slime and Megatron on the path, where event files go."""
    theirs = environment(recipe, folder)
    path = os.pathsep.join(filter(None, [ours.get("PYTHONPATH"), theirs["PYTHONPATH"]]))
    return {**ours, **theirs, "PYTHONPATH": path}
