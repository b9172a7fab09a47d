"""Which rows a run may draw: all of them are looked at before the first is trained on.

One design choice: the answer is written into the run folder once, so that every process skips the
same rows and the counts are on record. A row is refused with its id and lengths, never cut.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from slime_ext.data.check import CheckReport, check_rows
from slime_ext.data.errors import DataError
from slime_ext.rollout.runtime import Runtime, Split

REPORT = "data_report.json"


def inspect_rows(runtime: Runtime, split: Split) -> CheckReport:
    """Validate, render and tokenise every row of `split`."""
    data = runtime.recipe.data
    return check_rows(
        runtime.rows[split],
        prompt=data.prompt,
        tokenizer=runtime.tokenizer,
        chat_template_kwargs=runtime.recipe.model.chat_template_kwargs,
        max_prompt_tokens=data.max_prompt_tokens,
        needs=runtime.reward.needs,
    )


def refuse_or_skip(runtime: Runtime, splits: Sequence[Split] | None = None) -> dict[str, Any]:
    """Apply the recipe's row policies to `splits` (None: all) and write `data_report.json`.

    Raises DataError naming the offenders where a policy says "error". Returns what was written: per
    split the counts and the positions to skip.
    """
    written: dict[str, Any] = {}
    for split in runtime.rows if splits is None else splits:
        report = inspect_rows(runtime, split)
        _refuse(runtime, split, report)
        skip = report.positions["over_budget"]
        if len(skip) == len(runtime.rows[split]):
            raise DataError(
                f"no row of {split} fits data.max_prompt_tokens; " + report.lines()[0],
                remedy="raise the limit or use shorter contexts",
            )
        written[split] = {
            "rows": report.rows,
            "ok": report.ok,
            "skipped_over_budget": len(skip),
            "outcome_only": report.missing_gold,
            "skip": skip,
        }
        if skip or report.missing_gold:
            print(f"{split} rows: " + "\n".join(report.lines()))
    path = runtime.folder / REPORT
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(written) + "\n")
    partial.replace(path)
    return written


def skipped_rows(runtime: Runtime, split: Split) -> frozenset[int]:
    """Positions the run skips; empty before `refuse_or_skip` has written its report."""
    path = runtime.folder / REPORT
    if not path.is_file():
        return frozenset()
    return frozenset(json.loads(path.read_text()).get(split, {}).get("skip", []))


def _refuse(runtime: Runtime, split: Split, report: CheckReport) -> None:
    data = runtime.recipe.data
    bad = report.invalid + report.gold_outside
    remedies = ["repair the rows"] if bad else []
    if data.over_budget == "error" and report.over_budget:
        bad += report.over_budget
        remedies.append('set data.over_budget = "skip" or raise data.max_prompt_tokens')
    if data.missing_gold == "error" and report.missing_gold:
        bad += report.missing_gold
        remedies.append('set data.missing_gold = "outcome_only"')
    if bad:
        raise DataError(
            f"{bad} rows of {runtime.rows[split].path} cannot be used: "
            + "\n".join(report.lines()),
            remedy="; or ".join(remedies),
        )
