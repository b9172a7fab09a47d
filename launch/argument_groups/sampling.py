"""The sampling side's groups: rollout, SGLang, evaluation, hooks.

One design choice: only what slime itself reads is given; how prompts are made, rewards given and
evaluation is sampled, our hooks read from the recipe in the run folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from launch.argument_groups.gpus import gpu_split
from launch.argument_groups.words import CannotExpressError, absolute, words
from rewards.registry import find_reward
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.kinds import kind_named
from slime_ext.weights.shape import ModelShape

HOOKS = {
    "data-source-path": "slime_ext.rollout.data_source.RecipeDataSource",
    "custom-generate-function-path": "slime_ext.hooks.generate",
    "custom-rm-path": "slime_ext.hooks.reward",
    "custom-reward-post-process-path": "slime_ext.hooks.post_process_rewards",
    "custom-rollout-log-function-path": "slime_ext.hooks.log_rollout",
    "custom-megatron-before-train-step-hook-path": "slime_ext.hooks.before_train_step",
}
"""Given always."""
FILTER_HOOK = {"dynamic-sampling-filter-path": "slime_ext.hooks.keep_group"}
EVAL_HOOKS = {
    "eval-function-path": "slime_ext.hooks.evaluate",
    "custom-eval-rollout-log-function-path": "slime_ext.hooks.log_eval",
}
CONFIG = "longrl.yaml"
"""File in the run folder with the one key that our hooks find in slime's arguments."""
CONTEXT_MARGIN = 64
"""Tokens an engine is given above the context of a rollout; it reads a few less than it is told."""


def rollout_group(recipe: Recipe) -> list[str]:
    """Steps and batches. slime counts prompts in `--rollout-batch-size` and responses in
    `--global-batch-size`, one update each."""
    section = recipe.rollout
    _refuse_fan_out(recipe)
    return words(
        {
            "num-rollout": section.steps,
            "rollout-batch-size": section.prompts,
            "n-samples-per-prompt": section.group_size,
            "global-batch-size": section.prompts * section.group_size // section.updates,
            "rollout-max-response-len": section.max_response_tokens,
            "rollout-temperature": section.temperature,
            "rollout-top-p": section.top_p,
            "rollout-top-k": section.top_k,
            "rollout-stop-token-ids": recipe.model.stop_token_ids,
            "seed": recipe.seed,
        }
    )


def sglang_group(recipe: Recipe, shape: ModelShape) -> list[str]:
    """The engines and their router."""
    engine, split = recipe.engine, gpu_split(recipe)
    graphs = "sglang-cuda-graph-max-bs"
    if recipe.slime.version != "v0.2.4":
        graphs += "-decode"
    return words(
        {
            "rollout-num-gpus": split.rollout,
            "rollout-num-gpus-per-engine": engine.gpus,
            "sglang-mem-fraction-static": engine.memory_fraction,
            "sglang-context-length": engine.context_tokens
            or recipe.rollout.context_tokens + CONTEXT_MARGIN,
            "sglang-server-concurrency": engine.concurrency,
            "sglang-ep-size": engine.ep if engine.ep > 1 else None,
            "sglang-dp-size": engine.dp_attention if engine.dp_attention > 1 else None,
            "sglang-enable-dp-attention": engine.dp_attention > 1,
            graphs: engine.cuda_graph_max_batch,
            "sglang-json-model-override-args": engine_overrides(recipe, shape) or None,
            "sglang-router-request-timeout-secs": int(engine.request_timeout_s),
        }
    )


def engine_overrides(recipe: Recipe, shape: ModelShape) -> dict[str, Any]:
    """Changes to config.json in the engines: the trainer's rope scaling, then the recipe's own.

    The table is given under both its names, each with the base: transformers 5 reads
    `rope_parameters`, which setting `rope_scaling` replaces; what came before reads the latter.
    """
    overrides: dict[str, Any] = {}
    if recipe.model.rope_scaling is not None:
        scaling = recipe.model.rope_scaling | {"rope_theta": shape.rope_theta}
        overrides = {"rope_scaling": scaling, "rope_parameters": scaling}
    return overrides | recipe.engine.config_overrides


def held_out(recipe: Recipe) -> dict[str, str]:
    """Held-out files by the name their metrics get, `eval` first."""
    first = {"eval": recipe.data.eval} if recipe.data.eval is not None else {}
    return first | recipe.data.eval_sets


def evaluation_group(recipe: Recipe) -> list[str]:
    """When to evaluate. slime wants names and files before it evaluates at all; ours are read by
    our own function."""
    sets = held_out(recipe)
    if not sets:
        return []
    named = [word for name, path in sets.items() for word in (name, absolute(path))]
    return words({"eval-interval": recipe.eval.every, "eval-prompt-data": named})


def hooks_group(recipe: Recipe, run: Path) -> list[str]:
    """Our functions by import path, and the file that tells them where the recipe is."""
    return words(
        {
            **HOOKS,
            **(FILTER_HOOK if recipe.rollout.filter != "none" else {}),
            **(EVAL_HOOKS if held_out(recipe) else {}),
            "group-rm": find_reward(recipe.reward.kind).scores_groups(),
            "custom-config-path": run / CONFIG,
        }
    )


def write_hook_config(run: Path) -> None:
    """Write the file that `--custom-config-path` names, into the run folder."""
    (run / CONFIG).write_text(f"longrl_recipe: {json.dumps(str(run / 'recipe.toml'))}\n")


def _refuse_fan_out(recipe: Recipe) -> None:
    kind = kind_named(recipe.rollout.kind)
    if kind is None or not kind.fan_out:
        return
    several = f"rollout.kind = {recipe.rollout.kind!r} makes several samples of one rollout, and "
    if recipe.slime.version == "v0.2.4":
        raise CannotExpressError(
            several + 'slime v0.2.4 trains on parts of such rollouts; set slime.version = "v0.3.1"'
        )
    if find_reward(recipe.reward.kind).scores_groups():
        raise CannotExpressError(
            several + f"reward.kind = {recipe.reward.kind!r} scores whole groups, which slime "
            "cannot do together; change one of them"
        )
