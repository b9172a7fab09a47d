"""Where metrics go, and the environment a run needs beside its flags.

One design choice: no key and no address of a server with a key passes through the command line:
both are read from the environment, the address from WANDB_BASE_URL, as slime reads its own flag for
it only together with a key.
"""

from __future__ import annotations

from pathlib import Path

from launch.argument_groups.words import words
from slime_ext.recipe.schema import Recipe


def tracking_group(recipe: Recipe, run: Path) -> list[str]:
    """W&B and TensorBoard. The random suffix is off: a run that goes on keeps its name."""
    track = recipe.track
    table = words(
        {
            "use-tensorboard": track.tensorboard,
            "tb-project-name": track.project if track.tensorboard else None,
            "tb-experiment-name": recipe.name if track.tensorboard else None,
        }
    )
    if track.wandb == "off":
        return table
    return table + words(
        {
            "use-wandb": True,
            "wandb-mode": track.wandb,
            "wandb-project": track.project,
            "wandb-group": track.group or recipe.name,
            "wandb-team": track.team,
            "wandb-dir": run,
            "disable-wandb-random-suffix": True,
        }
    )


def tracking_variables(recipe: Recipe, run: Path) -> dict[str, str]:
    """Variables that every process of the run needs beside those flags, none of them secret."""
    variables = {}
    if recipe.track.tensorboard:
        variables["TENSORBOARD_DIR"] = str(run / "tensorboard")
    if recipe.track.wandb != "off" and recipe.track.host is not None:
        variables["WANDB_BASE_URL"] = recipe.track.host
    return variables


def environment(recipe: Recipe, run: Path) -> dict[str, str]:
    """The least that slime needs to start here, for a process beside the run (an evaluation); the
    run's own variables are in `launch/slurm/environment.py`."""
    host = {
        "PYTHONPATH": f"{recipe.slime.path}:{recipe.slime.megatron_path}",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    }
    return host | tracking_variables(recipe, run) | recipe.cluster.environment
