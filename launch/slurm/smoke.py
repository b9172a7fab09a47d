"""The smoke version of a recipe: the same code paths on one node, in minutes.

One design choice: what chooses code (reward, outcome, loss, rollout kind, host, container) stays,
and what costs time (model, context, batch, steps, nodes) shrinks; the layout keeps as much of each
kind of parallelism as one node holds.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from slime_ext.embedded.real.questions import questions_file
from slime_ext.recipe.schema import Recipe

MODEL = "models/Qwen3-0.6B"
HUB = "Qwen/Qwen3-0.6B"
FACTS = "Qwen3-0.6B"
CONTEXT = 8192
RESPONSE = 2048
STEPS = 2
PROMPTS = 4
GROUP = 4
TIME = "00:20:00"
SIZES = {"tp": 2, "pp": 2, "cp": 2}
"""The most of each kind of parallelism; a model of 0.6B parameters needs none."""


def smoke_recipe(recipe: Recipe, runs: Path, model: Path | None = None) -> Recipe:
    """`recipe` as its run NAME-smoke below `runs`, on `model` (None: Qwen3-0.6B).

    Two steps of at least 4 prompts over the eight questions that ship with the package, a
    checkpoint after each.
    """
    name = f"{recipe.name}-smoke"
    changed = {
        **_model(recipe, model),
        "data": {
            "train": str(runs.absolute() / name / "data" / "train.jsonl"),
            "eval": None,
            "eval_sets": {},
            "format": "longrl",
            "prompt": "numbered_chunks",
            "max_prompt_tokens": CONTEXT - RESPONSE,
            "missing_gold": "outcome_only",
        },
        **_layout(recipe),
        "checkpoint": {"every": 1},
        "track": {"wandb": "off"},
        "watchdog": {"minimum_s": 600.0},
    }
    if any("${LONGRL_SERVICE_" in one.url for one in recipe.outcome.judge.endpoints):
        # The judge of the job itself has no place on the one node.
        changed["outcome"] = {"kind": "f1"}
    table = recipe.model_dump(mode="json")
    for section, values in changed.items():
        table[section] |= values
    return Recipe.model_validate(table | {"name": name})


def write_smoke_data(recipe: Recipe) -> None:
    """Put the questions where the smoke recipe says they are."""
    target = Path(recipe.data.train)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(questions_file(), target)


def _model(recipe: Recipe, model: Path | None) -> dict[str, dict[str, object]]:
    path = str(model.absolute()) if model else MODEL
    own = {"hub": None, "facts": None} if model else {"hub": HUB, "facts": FACTS}
    start = f"{path}_torch_dist" if recipe.slime.version == "v0.2.4" else None
    common: dict[str, object] = {
        "rope_scaling": None,
        "stop_token_ids": [],
        "megatron_checkpoint": start,
    }
    return {"model": {"path": path, **own, **common}}


def _layout(recipe: Recipe) -> dict[str, dict[str, object]]:
    cluster = recipe.cluster
    apart = not cluster.colocate and cluster.gpus_per_node > 1
    rollout = cluster.gpus_per_node // 2 if apart else cluster.gpus_per_node
    train = cluster.gpus_per_node - rollout if apart else rollout
    sizes = _sizes(recipe, train)
    dp = train // (sizes["tp"] * sizes["pp"] * sizes["cp"])
    prompts = PROMPTS
    while prompts * GROUP % dp:
        prompts += 1
    engine = max(size for size in (1, 2) if rollout % size == 0 and size <= recipe.engine.gpus)
    return {
        "rollout": {
            "steps": STEPS,
            "prompts": prompts,
            "group_size": GROUP,
            "updates": 1,
            "max_response_tokens": RESPONSE,
            "context_tokens": CONTEXT,
            "filter": "none",
        },
        "parallel": {**sizes, "ep": 1, "etp": 1, "dp": None},
        "performance": {"max_tokens_per_gpu": CONTEXT},
        "engine": {
            "gpus": engine,
            "ep": 1,
            "dp_attention": 1,
            "context_tokens": None,
            "config_overrides": {},
        },
        "cluster": {
            "nodes": 1,
            "colocate": not apart,
            "rollout_gpus": rollout if apart else None,
            "services": [],
            "time": TIME,
            "signal_s": 60,
            "requeue": False,
        },
    }


def _sizes(recipe: Recipe, gpus: int) -> dict[str, int]:
    """Sizes at most those of the recipe whose product divides `gpus`; tp first, pp last."""
    sizes, left = {}, gpus
    for name in ("tp", "cp", "pp"):
        asked = min(getattr(recipe.parallel, name), SIZES[name])
        sizes[name] = asked if left % asked == 0 else 1
        left //= sizes[name]
    return sizes
