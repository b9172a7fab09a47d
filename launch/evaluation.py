"""What slime is told for an evaluation: the flags of `slime_ext.host.evaluate`.

One design choice: only what an evaluation reads is given, in the groups that training is given.
Sampling is not among it: our evaluation function takes that from the recipe, whatever slime's own
flags say.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from launch.argument_groups.extra import merge_extras
from launch.argument_groups.sampling import CONFIG, EVAL_HOOKS, HOOKS, sglang_group
from launch.argument_groups.tracking import tracking_group
from launch.argument_groups.words import words
from launch.flags.check import check_flags
from launch.models.facts import shape_for
from launch.plan.rules import engine_rules, refuse
from slime_ext.recipe.cluster_sections import ExtraSection, ParallelSection
from slime_ext.recipe.schema import Recipe

DATA_SOURCE = "data-source-path"
"""slime makes one even where nothing is trained on."""
ROUTER_PREFIX = "router-"


def evaluation_arguments(
    recipe: Recipe, folder: Path, engines: Sequence[str] = (), step: int = 0
) -> list[str]:
    """The words after `python -m slime_ext.host.evaluate`, no secret among them.

    `folder` is the evaluation's own, with CONFIG in it; `engines` are addresses HOST:PORT of
    running engines (or of one router), none of them lets slime start engines on every GPU of the
    recipe; metrics are logged under `step`.

    Raises LayoutError or ModelFactsError where slime cannot start the engines, FlagError for a
    pass-through flag that slime does not know.
    """
    sampling = _for_sampling(recipe)
    groups = {
        "rollout": words(
            {
                "debug-rollout-only": True,
                "hf-checkpoint": recipe.model.path,
                "seed": recipe.seed,
                "num-rollout": 0,
                "rollout-batch-size": recipe.rollout.prompts,
            }
        ),
        "sglang": _outside(engines) if engines else _own(sampling),
        "tracking": tracking_group(sampling, folder),
        "hooks": words(
            {
                DATA_SOURCE: HOOKS[DATA_SOURCE],
                **EVAL_HOOKS,
                "custom-config-path": folder / CONFIG,
            }
        ),
    }
    merged, origins = merge_extras(groups, sampling)
    argv = [word for group in merged.values() for word in group]
    check_flags(argv, recipe.slime.version, origins)
    return argv + _launcher_flags(engines, step)


def _for_sampling(recipe: Recipe) -> Recipe:
    """The recipe with every GPU for engines, a W&B run apart from training's, and of the
    pass-through flags those of SGLang and its router."""
    router = {name: v for name, v in recipe.extra.slime.items() if name.startswith(ROUTER_PREFIX)}
    track, cluster = recipe.track, recipe.cluster
    changed = {
        "parallel": ParallelSection(),
        "cluster": cluster.model_copy(update={"colocate": True, "rollout_gpus": None}),
        "track": track.model_copy(update={"group": f"{track.group or recipe.name}-eval"}),
        "extra": ExtraSection(slime=router, sglang=recipe.extra.sglang),
    }
    return recipe.model_copy(update=changed)


def _own(recipe: Recipe) -> list[str]:
    shape = shape_for(recipe)
    refuse(engine_rules(recipe, shape))
    return sglang_group(recipe, shape)


def _outside(engines: Sequence[str]) -> list[str]:
    """Several engines get a router of slime's. One needs none, and is named to the launcher; a GPU
    is stated because v0.2.4 divides by their number."""
    if len(engines) == 1:
        return words({"rollout-num-gpus": 1})
    return words({"rollout-num-gpus": len(engines), "rollout-external-engine-addrs": list(engines)})


def _launcher_flags(engines: Sequence[str], step: int) -> list[str]:
    return words({"longrl-step": step, "longrl-engine": engines[0] if len(engines) == 1 else None})
