"""`longrl check`: find what is wrong with a recipe before anything is spent."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from launch.check import Check, check_recipe
from launch.cli.options import Overrides, RecipePath
from slime_ext.recipe.load import load_recipe


def check(recipe: RecipePath, overrides: Overrides = ()) -> int:
    """Validate recipe, tokenizer and every row, and try the reward on three rows.

    Exit code 1 where a row or the reward would fail.

    Args:
        recipe: The recipe.
        overrides: Changes of single keys.
    """
    asked = load_recipe(recipe, overrides).recipe
    from slime_ext.embedded.builtin import resolve, write_data

    with tempfile.TemporaryDirectory() as scratch:
        resolved = resolve(asked, Path(scratch))
        write_data(asked, resolved)
        result = check_recipe(resolved)
    _show(result)
    bad = sum(report.rows - report.ok for report in result.rows.values())
    return 1 if bad or result.failures() else 0


def _show(result: Check) -> None:
    console = Console()
    for split, report in result.rows.items():
        console.print(f"{split}: " + "\n".join(report.lines()), highlight=False, markup=False)
    table = Table("row", "response", "total", "parts", "reason", title="the reward on three rows")
    for trial in result.trials:
        total = "undetermined" if trial.score.total is None else f"{trial.score.total:.3f}"
        parts = ", ".join(f"{name} {value:.2f}" for name, value in trial.score.parts.items())
        table.add_row(trial.row, trial.response, total, parts, trial.score.reason or "")
    console.print(table)
    if result.failures():
        console.print("[bold]the reward gives no number for the rows marked undetermined[/bold]")
