"""Every row of every file: it parses, its prompt fits with the real tokenizer, gold is inside.

One design choice: the scan is the one that training makes before its first step, so what passes
here is not refused there.
"""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path

from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from rewards.outcome import OutcomeConfig
from slime_ext.data.check import CheckReport
from slime_ext.metrics.run_folder import RunFolder, write_recipe
from slime_ext.recipe.load import dump_recipe
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.runtime import Runtime, load_runtime
from slime_ext.rollout.usable import inspect_rows


def check_data(recipe: Recipe, context: Context) -> list[Finding]:
    """One finding a split; raises DataError for a file that cannot be indexed."""
    area = Area("data")
    if why := unreadable(context):
        area.skip("rows", f"{why}: rows were not looked at")
        return area.findings
    # Rows do not depend on who judges; a judge's key may be absent here.
    with tempfile.TemporaryDirectory() as scratch:
        runtime = open_runtime(recipe.model_copy(update={"outcome": OutcomeConfig()}), scratch)
        for split in runtime.rows:
            _report(split, inspect_rows(runtime, split), recipe, area)
    return area.findings


def unreadable(context: Context) -> str:
    """Why rows and rewards cannot be looked at here; empty where they can."""
    return context.no_tokenizer or ("data files are not here" if context.missing_data else "")


def open_runtime(recipe: Recipe, scratch: str) -> Runtime:
    """What hooks of a run of `recipe` would share; raises what loading its parts raises."""
    folder = RunFolder(Path(scratch))
    write_recipe(folder, _with_hosts(recipe))
    return load_runtime(folder.recipe)


def _with_hosts(recipe: Recipe) -> Recipe:
    """`recipe` with a host for each server that only a job of its own starts."""
    text = dump_recipe(recipe)
    for service in recipe.cluster.services:
        text = text.replace(f"${{{service.variable}}}", "127.0.0.1")
    return Recipe.model_validate(tomllib.loads(text))


def _report(split: str, report: CheckReport, recipe: Recipe, area: Area) -> None:
    head, *offenders = report.lines()
    refused = report.invalid + report.gold_outside
    remedies = ["repair the rows"] if refused else []
    dropped = []
    for count, policy, key, remedy in (
        (
            report.over_budget,
            recipe.data.over_budget,
            "over_budget",
            'raise data.max_prompt_tokens, or set data.over_budget = "skip"',
        ),
        (
            report.missing_gold,
            recipe.data.missing_gold,
            "missing_gold",
            'add the gold, or set data.missing_gold = "outcome_only"',
        ),
    ):
        if count and policy == "error":
            refused += count
            remedies.append(remedy)
        elif count:
            dropped.append(f'data.{key} = "{policy}" concerns {count} rows')
    if refused:
        area.fail(split, head, "; ".join(remedies), offenders)
    elif report.over_budget == report.rows:
        area.fail(split, head, "raise data.max_prompt_tokens or use shorter contexts", offenders)
    elif dropped:
        area.warn(split, head, f"{'; '.join(dropped)}: see whether so many may go", offenders)
    else:
        area.ok(split, head)
