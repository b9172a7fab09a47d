"""`longrl import`: a Hugging Face folder as the Megatron checkpoint a run starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from launch.cli.options import Overrides
from launch.prepare.checkpoint import start_lines
from slime_ext.recipe.load import load_recipe

Folder = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="HF_FOLDER")]
Out = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")]


def import_model(
    folder: Folder, out: Out, recipe: Path | None = None, overrides: Overrides = ()
) -> int:
    """Write a model as a torch_dist checkpoint, on CPU, for `model.megatron_checkpoint` of the
    embedded trainer.

    A recipe of the slime backend writes nothing: slime's own converter needs a GPU and its image,
    so its command is printed, or that this slime reads Hugging Face folders itself.

    Args:
        folder: The model's folder: config.json and safetensors.
        out: The folder to write; it gets iter_0000000 and the file that names it.
        recipe: The recipe that will start from it.
        overrides: Changes of single keys of the recipe.
    """
    if recipe is not None:
        loaded = load_recipe(recipe, overrides).recipe
        if loaded.backend == "slime":
            for line in start_lines(loaded, folder, out):
                print(line)
            return 0
    from longrl_tools.export.import_hf import import_folder

    made = import_folder(folder, out)
    print(f"{made.checkpoint}: {made.tensors} tensors, {made.parameters:,} parameters")
    print(f'start from it with --set model.megatron_checkpoint="{out}"')
    return 0
