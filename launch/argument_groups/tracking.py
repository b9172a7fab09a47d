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
            "wandb-dir": run / "wandb",
            "disable-wandb-random-suffix": True,
        }
    )


def environment(recipe: Recipe, run: Path) -> dict[str, str]:
    """Variables of every process of the run, none of them secret.

    PYTHONPATH holds the folders of Megatron-LM and slime only; LongRL itself is installed.
    """
    variables = {
        "PYTHONPATH": f"{recipe.slime.path}:{recipe.slime.megatron_path}",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    }
    if recipe.track.tensorboard:
        variables["TENSORBOARD_DIR"] = str(run / "tensorboard")
    if recipe.track.host is not None:
        variables["WANDB_BASE_URL"] = recipe.track.host
    return variables | recipe.cluster.environment
