"""A small recipe of a cluster run."""

from __future__ import annotations

from typing import Any

from slime_ext.recipe.schema import Recipe


def job_recipe(steps: int = 10, **sections: dict[str, Any]) -> Recipe:
    """A slime run of `steps` rollouts; keywords are whole sections."""
    return Recipe.model_validate(
        {
            "name": "job",
            "backend": "slime",
            "model": {"path": "/nowhere", "facts": "Qwen3-4B-Thinking-2507"},
            "data": {"train": "/nowhere/train.jsonl", "max_prompt_tokens": 8000},
            "rollout": {
                "steps": steps,
                "prompts": 16,
                "group_size": 8,
                "max_response_tokens": 1000,
                "context_tokens": 16000,
            },
            "reward": {"kind": "outcome"},
            "optimiser": {"lr": 1e-6},
            **sections,
        }
    )
