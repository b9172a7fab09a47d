"""The model: its shape against the named facts, its context against the recipe's.

One design choice: the context is computed as the engine does it (`max_position_embeddings`, times a
rope factor only where no original length is stated), because an engine refuses to start beyond it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from launch.argument_groups.sampling import CONTEXT_MARGIN
from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from slime_ext.recipe.schema import Recipe


def check_model(recipe: Recipe, context: Context) -> list[Finding]:
    """Shape and context; a difference between folder and facts raises, naming both values."""
    area = Area("model")
    if context.model is None and recipe.model.facts is None:
        area.skip("shape", "neither model folder nor model.facts: shape and context unknown")
        return area.findings
    shape = context.shape
    source = "facts" if context.model is None else "config.json"
    area.ok(
        "shape",
        f"{shape.architecture}, {shape.num_layers} layers of {shape.hidden_size}, "
        f"{shape.num_heads} heads over {shape.num_kv_heads}, vocabulary {shape.vocab_size} "
        f"({source})",
    )
    config = _config(context)
    if recipe.model.rope_scaling is not None:
        config = {**config, "rope_scaling": recipe.model.rope_scaling, "rope_parameters": None}
    limit = engine_limit(config | recipe.engine.config_overrides, shape.max_position_embeddings)
    _context(recipe, context, limit, area)
    return area.findings


def engine_limit(config: Mapping[str, Any], stated: int) -> int:
    """Tokens an engine takes at most; `stated` is the shape's max_position_embeddings."""
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    factor = float(scaling.get("factor", 1.0))
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if "original_max_position_embeddings" in scaling or kind == "llama3":
        factor = 1.0
    return int(factor * int(config.get("max_position_embeddings") or stated))


def _context(recipe: Recipe, context: Context, limit: int, area: Area) -> None:
    asked = recipe.rollout.context_tokens
    needed = asked
    if context.cluster:
        needed = recipe.engine.context_tokens or asked + CONTEXT_MARGIN
    if needed > limit:
        area.fail(
            "context",
            f"the engine needs {needed} tokens of context (rollout.context_tokens = {asked}), the "
            f"model's config allows {limit}",
            f"set engine.config_overrides = {{ max_position_embeddings = {needed} }} if the model "
            "bears it, give model.rope_scaling, or lower rollout.context_tokens",
        )
    elif context.cluster and needed < asked:
        area.fail(
            "context",
            f"engine.context_tokens = {needed} is below rollout.context_tokens = {asked}",
            f"set it to {asked + CONTEXT_MARGIN} or leave it out",
        )
    else:
        spare = f", {needed - asked} of them spare" if needed > asked else ""
        area.ok("context", f"an engine takes {needed:,} tokens{spare}; the model allows {limit:,}")


def _config(context: Context) -> dict[str, Any]:
    """The text part of config.json, or of the facts where there is no folder."""
    if context.model is not None:
        values = json.loads((context.model / "config.json").read_text())
    else:
        from launch.models.facts import facts_file

        values = json.loads(facts_file(str(context.recipe.model.facts)).read_text())["config"]
    return {**values, **(values.get("text_config") or {})}
