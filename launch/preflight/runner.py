"""Runs the areas one after the other, each within its deadline.

One design choice: a check runs in a daemon thread of its own, so that a server that never answers
or a hung file system costs its deadline and nothing more. Errors that explain themselves, and those
of the operating system, become findings; any other is a fault of ours and keeps its traceback.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.pool import ThreadPool

from launch.preflight.context import Context
from launch.preflight.finding import Finding
from slime_ext.errors import ExplainedError
from slime_ext.recipe.schema import Recipe

ERROR = "error"
"""Name of a finding that an exception became."""

CheckFunction = Callable[[Recipe, Context], list[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """An area, the function that looks at it, and how long it may take (seconds)."""

    area: str
    function: CheckFunction
    deadline_s: float
    cluster_only: bool = False
    needs_shape: bool = False
    """Left out where the size of the model is unknown; area "model" says so."""


def run_checks(checks: Sequence[Check], recipe: Recipe, context: Context) -> list[Finding]:
    """The findings of all areas that concern the recipe's backend, in order."""
    findings: list[Finding] = []
    for check in checks:
        if context.cluster or not check.cluster_only:
            findings += _once(_run(check, recipe, context), findings)
    return findings


def _run(check: Check, recipe: Recipe, context: Context) -> list[Finding]:
    if check.needs_shape and not context.shape_known:
        unknown = "the size of the model is unknown: neither its folder nor model.facts"
        return [Finding(check.area, "all", "skip", unknown)]
    # ThreadPool's threads are daemons: one that hangs does not keep the command from ending.
    pool = ThreadPool(1)
    try:
        return pool.apply_async(check.function, (recipe, context)).get(check.deadline_s)
    except multiprocessing.TimeoutError:
        return [
            Finding(
                check.area,
                "deadline",
                "fail",
                f"not finished after {check.deadline_s:g} s",
                "see whether a file system or a server hangs, then type the command again",
            )
        ]
    except (ExplainedError, OSError) as error:
        return [Finding(check.area, ERROR, "fail", str(error))]
    finally:
        # An open pool may complain on its way out, when the interpreter has closed its pipes.
        pool.close()


def _once(new: list[Finding], before: list[Finding]) -> list[Finding]:
    """An error that an area before has met already is only referred to."""
    met = {one.message: one.area for one in before if one.name == ERROR}
    return [
        replace(one, status="skip", message=f"for the same reason as {met[one.message]}")
        if one.name == ERROR and one.message in met
        else one
        for one in new
    ]
