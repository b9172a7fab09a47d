"""`longrl prepare`: bring a recipe's model and data here, on a machine with network."""

from __future__ import annotations

from launch.cli.options import Overrides, RecipePath
from slime_ext.recipe.load import load_recipe


def prepare(recipe: RecipePath, overrides: Overrides = (), refresh: bool = False) -> int:
    """Fetch the model and fetch and convert the published data of a recipe.

    What is there already is left alone; an interrupted download goes on. A checkpoint that slime
    has to convert needs a GPU: its command is printed.

    Args:
        recipe: The recipe.
        overrides: Changes of single keys.
        refresh: Fetch and convert data anew, even where it is prepared.
    """
    loaded = load_recipe(recipe, overrides).recipe
    from launch.prepare.checkpoint import checkpoint_lines
    from launch.prepare.data import prepare_data
    from launch.prepare.model import prepare_model

    for line in prepare_data(loaded.data, refresh):
        print(line, flush=True)
    for line in prepare_model(loaded.model):
        print(line, flush=True)
    for line in checkpoint_lines(loaded):
        print(line, flush=True)
    print("compute nodes run with HF_HUB_OFFLINE=1: nothing of this recipe needs the network now")
    return 0
