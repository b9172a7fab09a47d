"""How many groups carry a signal: all right or all wrong teaches GRPO nothing.

One design choice: one accuracy stands for all prompts. The share is convex in p, so prompts that
differ in difficulty have more flat groups than it says: the figure is the friendly one.
"""

from __future__ import annotations

import math

from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from slime_ext.metrics.records import read_rows
from slime_ext.recipe.schema import Recipe

MOST_FLAT = 0.8
OUTCOME = "reward/outcome"


def flat_share(accuracy: float, group_size: int) -> float:
    """p^G + (1-p)^G: the probability that G independent responses are all right or all wrong."""
    return float(accuracy**group_size + (1 - accuracy) ** group_size)


def check_signal(recipe: Recipe, context: Context) -> list[Finding]:
    """The share of flat groups at the last known accuracy."""
    area = Area("signal")
    accuracy, source = _accuracy(recipe, context)
    if accuracy is None:
        area.skip(
            "groups",
            "no accuracy is known yet; set plan.last_accuracy to see the share of "
            "groups without signal",
        )
        return area.findings
    size, prompts = recipe.rollout.group_size, recipe.rollout.prompts
    share = flat_share(accuracy, size)
    said = (
        f"{share:.0%} of groups all right or all wrong at accuracy {accuracy:.3g} ({source}) and "
        f"group size {size}: about {(1 - share) * prompts:.1f} of {prompts} prompts a step teach"
    )
    if share > MOST_FLAT:
        area.warn("groups", said, _remedy(accuracy, size))
    else:
        area.ok("groups", said)
    return area.findings


def _remedy(accuracy: float, size: int) -> str:
    rarer = min(accuracy, 1 - accuracy)
    if rarer == 0:
        return "no group can differ in outcome: use other data, or a reward with partial credit"
    wanted = next(
        (more for more in range(size + 1, 65) if flat_share(accuracy, more) <= MOST_FLAT), None
    )
    grow = f"rollout.group_size = {wanted} brings it to {MOST_FLAT:.0%}; or " if wanted else ""
    kind = "harder" if accuracy > 0.5 else "easier"
    return f'{grow}choose {kind} data, or set rollout.filter = "flat" and pay for more rollouts'


def _accuracy(recipe: Recipe, context: Context) -> tuple[float | None, str]:
    """The accuracy of the last evaluation of the run, else what the recipe states; and whence."""
    rows = read_rows(context.folder.metrics / "eval.jsonl")
    for row in reversed(rows):
        value = row.get(OUTCOME)
        if isinstance(value, int | float) and math.isfinite(value):
            return float(value), f"evaluation at step {row['step']}"
    return recipe.plan.last_accuracy, "plan.last_accuracy"
