"""`longrl check`: find what is wrong with a recipe before anything is spent."""

from __future__ import annotations

import tempfile
from pathlib import Path

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
    for split, report in result.rows.items():
        print(f"{split}: " + "\n".join(report.lines()))
    print("\nthe reward on made-up responses:")
    row = None
    for trial in result.trials:
        if trial.row != row:
            row = trial.row
            print(f"  {row}")
        total = "undetermined" if trial.score.total is None else f"{trial.score.total:.3f}"
        parts = "  ".join(f"{name} {value:.2f}" for name, value in trial.score.parts.items())
        reason = f"  [{trial.score.reason}]" if trial.score.reason else ""
        print(f"    {trial.response:<12} {total:>12}{reason}  {parts}")
    if result.failures():
        print("the reward gave no number where it says undetermined; the log above says why")
