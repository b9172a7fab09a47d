"""Recipes of the slime backend for the tests of its command line."""

from __future__ import annotations

from pathlib import Path

from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe

DENSE = """
name = "dense"
backend = "slime"

[model]
path = "/models/Qwen3-4B-Thinking-2507"
facts = "Qwen3-4B-Thinking-2507"
megatron_checkpoint = "/models/Qwen3-4B-Thinking-2507_torch_dist"
family = "qwen3"
stop_token_ids = [151643, 151645]

[data]
train = "/data/train.jsonl"
eval_sets = { aa-lcr = "/data/aa_lcr.jsonl" }
max_prompt_tokens = 128000

[rollout]
steps = 200
prompts = 16
group_size = 8
max_response_tokens = 32000
context_tokens = 160000

[reward]
kind = "rubric"

[loss]
icepop = [0.5, 2.0]

[optimiser]
lr = 2e-6

[parallel]
tp = 4
pp = 2
cp = 4

[cluster]
nodes = 4

[track]
wandb = "online"
team = "ours"
"""

EXPERTS = (
    'model.path="/models/Qwen3-30B-A3B-Thinking-2507"',
    'model.facts="Qwen3-30B-A3B-Thinking-2507"',
    "parallel.ep=16",
    "engine.ep=8",
)
"""Changes that make it the mixture of experts."""


def dense_recipe(folder: Path, *overrides: str) -> Recipe:
    """The dense recipe, written into `folder`, with single keys changed."""
    file = folder / "dense.toml"
    file.write_text(DENSE)
    return load_recipe(file, overrides).recipe
