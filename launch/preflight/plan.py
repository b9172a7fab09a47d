"""The memory plan's verdict.

One design choice: every term of a plan is an estimate, so a tight one is a warning, and only one
that cannot fit is a failure, with changes that were themselves planned and fit.
"""

from __future__ import annotations

from launch.plan.plan import make_plan
from launch.plan.remedy import remedies
from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from slime_ext.recipe.schema import Recipe


def check_plan(recipe: Recipe, context: Context) -> list[Finding]:
    """The limit that binds; raises LayoutError for a layout that breaks a rule."""
    area = Area("plan")
    plan = make_plan(recipe, context.shape)
    said = f"{plan.verdict}: {plan.binding.sentence()} (estimated)"
    if plan.verdict == "fits":
        area.ok("memory", said)
    elif plan.verdict == "tight":
        area.warn("memory", said, "type longrl plan RECIPE to see every term, --search for layouts")
    else:
        changes = "; ".join(remedies(recipe, context.shape, plan))
        area.fail("memory", said, changes or "type longrl plan RECIPE --search")
    return area.findings
