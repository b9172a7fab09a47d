"""Runs the areas one after the other, each within its deadline.

One design choice: a check runs in a daemon thread of its own, so that a server that never answers
or a hung file system costs its deadline and nothing more. Errors that explain themselves, and those
of the operating system, become findings; any other is a fault of ours and keeps its traceback.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool

from launch.preflight.context import Context
from launch.preflight.finding import Finding
from slime_ext.errors import ExplainedError
from slime_ext.recipe.schema import Recipe

CheckFunction = Callable[[Recipe, Context], list[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """An area, the function that looks at it, and how long it may take (seconds)."""

    area: str
    function: CheckFunction
    deadline_s: float
    cluster_only: bool = False


def run_checks(checks: Sequence[Check], recipe: Recipe, context: Context) -> list[Finding]:
    """The findings of all areas that concern the recipe's backend, in order."""
    concerned = [check for check in checks if context.cluster or not check.cluster_only]
    return [finding for check in concerned for finding in _run(check, recipe, context)]


def _run(check: Check, recipe: Recipe, context: Context) -> list[Finding]:
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
        return [Finding(check.area, "error", "fail", str(error), "")]
