"""Recipes and shapes for the tests of the plan."""

from __future__ import annotations

from typing import Any

from launch.models.facts import facts_shape
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.shape import ModelShape

SHAPES = {
    "4b": facts_shape("Qwen3-4B-Thinking-2507"),
    "8b": facts_shape("DeepSeek-R1-0528-Qwen3-8B"),
    "30b": facts_shape("Qwen3-30B-A3B-Thinking-2507"),
    "hybrid": facts_shape("Qwen3.5-4B"),
}
BASE: dict[str, Any] = {
    "name": "planned",
    "backend": "slime",
    "model.path": "nowhere",
    "data.train": "nowhere.jsonl",
    "data.max_prompt_tokens": 128000,
    "rollout.steps": 200,
    "rollout.prompts": 16,
    "rollout.group_size": 8,
    "rollout.max_response_tokens": 32000,
    "rollout.context_tokens": 163840,
    "reward.kind": "rubric",
    "optimiser.lr": 2e-6,
    "parallel.tp": 4,
    "parallel.pp": 2,
    "parallel.cp": 4,
    "cluster.nodes": 4,
    "performance.log_prob_chunk": 256,
}
"""32 GPUs of 80 GB as in the worked example at 163,840 tokens."""


def made(**changes: Any) -> Recipe:
    """The base recipe with keys changed; `parallel__tp=8` sets parallel.tp."""
    flat = BASE | {key.replace("__", "."): value for key, value in changes.items()}
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        section, dot, name = key.partition(".")
        if dot:
            nested.setdefault(section, {})[name] = value
        else:
            nested[section] = value
    return Recipe.model_validate(nested)


def shape_of(name: str) -> ModelShape:
    return SHAPES[name]
