"""A recipe as the command line of slime's train.py, in named groups.

One design choice: every word goes through the host's flag lists before it is used, ours as well as
the pass-through ones, because slime ignores what it does not know in silence.
"""

from __future__ import annotations

from pathlib import Path

from launch.argument_groups.extra import merge_extras
from launch.argument_groups.sampling import (
    evaluation_group,
    hooks_group,
    rollout_group,
    sglang_group,
)
from launch.argument_groups.tracking import tracking_group
from launch.argument_groups.training import (
    checkpoint_group,
    grpo_group,
    optimiser_group,
    parallel_group,
    performance_group,
)
from launch.flags.check import check_flags
from launch.models.facts import shape_for
from launch.models.megatron import model_flags
from launch.plan.rules import require_rules
from slime_ext.recipe.schema import Recipe


def slime_arguments(recipe: Recipe, run: Path) -> dict[str, list[str]]:
    """The flags of slime's train.py for `recipe`, run in the folder `run`: group name to words.

    Groups: model, checkpoint, rollout, grpo, optimiser, parallel, performance, sglang, evaluation,
    tracking, hooks, extra. No word is a secret. `run` need not exist.

    Raises ModelFactsError (the model's shape is unknown or stated in two ways), LayoutError (what
    must divide what), CannotExpressError (slime has no flag for what the recipe says), FlagError (a
    flag that the host does not know, that does nothing there, or that contradicts a recipe key).
    """
    run = run.absolute()
    shape = shape_for(recipe)
    model: list[str] = []
    for flag, value in model_flags(shape, recipe):
        model += [flag] if value is None else [flag, value]
    checkpoint = checkpoint_group(recipe, run)
    require_rules(recipe, shape)
    groups = {
        "model": model,
        "checkpoint": checkpoint,
        "rollout": rollout_group(recipe),
        "grpo": grpo_group(recipe),
        "optimiser": optimiser_group(recipe),
        "parallel": parallel_group(recipe, shape),
        "performance": performance_group(recipe),
        "sglang": sglang_group(recipe, shape),
        "evaluation": evaluation_group(recipe),
        "tracking": tracking_group(recipe, run),
        "hooks": hooks_group(recipe, run),
    }
    merged, origins = merge_extras(groups, recipe)
    argv = [word for group in merged.values() for word in group]
    check_flags(argv, recipe.slime.version, origins)
    return merged


def command_line(recipe: Recipe, run: Path, python: str | None = None) -> list[str]:
    """The whole command: python, slime's train.py, every flag. Raises as `slime_arguments`."""
    groups = slime_arguments(recipe, run)
    program = [python or recipe.cluster.python, str(Path(recipe.slime.path) / "train.py")]
    return program + [word for group in groups.values() for word in group]
