"""The torch_dist checkpoint a run may start from, which only a machine with a GPU can make.

One design choice: slime's own converter needs a GPU and its Megatron, which a login node lacks, so
its command is printed with every flag filled in instead of being run.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from launch.models.facts import shape_for
from launch.models.megatron import model_flags
from slime_ext.recipe.schema import Recipe

MARKER = "latest_checkpointed_iteration.txt"


def checkpoint_lines(recipe: Recipe) -> list[str]:
    """What is left to do about `model.megatron_checkpoint`, line by line; empty for nothing.

    Raises ModelFactsError where the model's shape is unknown or slime cannot build it.
    """
    if recipe.backend != "slime":
        return []
    target = recipe.model.megatron_checkpoint
    if target is None and recipe.slime.version == "v0.2.4":
        return [
            "checkpoint: slime v0.2.4 starts from torch_dist only; set model.megatron_checkpoint "
            "to the folder it shall lie in and give this command again"
        ]
    if target is None:
        return []
    if (Path(target) / MARKER).is_file():
        return [f"checkpoint: {target} is complete"]
    return [
        f"checkpoint: {target} is still to be made, inside slime's image on a node with a GPU:",
        f"  {conversion_command(recipe, Path(target))}",
    ]


def start_lines(recipe: Recipe, folder: Path, target: Path) -> list[str]:
    """How the model in `folder` becomes the start of runs under slime: the command that writes
    `target`, or that nothing needs converting.

    Raises ModelFactsError where the model's shape is unknown or slime cannot build it.
    """
    if recipe.slime.version == "v0.3.1" and recipe.model.megatron_checkpoint is None:
        return [
            f"slime v0.3.1 reads {folder} itself; set model.path to it, and "
            "model.megatron_checkpoint only to start from torch_dist all the same"
        ]
    model = recipe.model.model_copy(update={"path": str(folder)})
    command = conversion_command(recipe.model_copy(update={"model": model}), target)
    return [
        "inside slime's image on a node with a GPU:",
        f"  {command}",
        f"then set model.megatron_checkpoint to {target}",
    ]


def conversion_command(recipe: Recipe, target: Path) -> str:
    """The shell command that writes `target` from the Hugging Face folder."""
    words = ["python3", f"{recipe.slime.path}/tools/convert_hf_to_torch_dist.py"]
    for flag, value in model_flags(shape_for(recipe), recipe):
        words += [flag] if value is None else [flag, value]
    words += ["--hf-checkpoint", str(Path(recipe.model.path).absolute())]
    words += ["--save", str(target.absolute())]
    path = shlex.quote(f"{recipe.slime.megatron_path}:{recipe.slime.path}")
    return f"PYTHONPATH={path} {shlex.join(words)}"
