"""The training program of a run: its argument list, and the variables its Ray job is given.

One design choice: the argument list is written to the attempt's folder before it runs, so that what
ran can be read afterwards; no key is ever part of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from launch.argument_groups.sampling import write_hook_config
from launch.arguments import command_line
from launch.slurm.environment import attempt_variables, environment
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe


def training_command(recipe: Recipe, folder: RunFolder, attempt: int) -> list[str]:
    """`python train.py` of the host with every flag of the recipe, and the file it names."""
    command = command_line(recipe, folder.path)
    write_hook_config(folder.path)
    folder.write_json(folder.path / "attempts" / str(attempt) / "command.json", command)
    return command


def job_variables(
    recipe: Recipe, folder: RunFolder, attempt: int, nodes: Sequence[str] = ()
) -> dict[str, str]:
    """Variables of the Ray job, which anybody can list: none is a secret.

    `nodes` are addresses that no proxy must see: trainer, router and engines talk over HTTP.
    """
    shown = {one.name: one.value for one in environment(recipe, folder.path)}
    hosts = {one.variable: os.environ[one.variable] for one in recipe.cluster.services}
    # What the submitting shell had on its path stays behind ours: a reward of one's own lies there.
    path = {"PYTHONPATH": os.environ.get("PYTHONPATH", shown["PYTHONPATH"])}
    for name in ("no_proxy", "NO_PROXY"):
        shown[name] = ",".join([shown[name], *nodes])
    return shown | path | hosts | attempt_variables(recipe, folder.path, attempt)
