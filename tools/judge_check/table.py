"""The comparison as a table for people and as JSON for machines.

One design choice: a judge is a column and a measure a row, since there are more measures than
judges; a share stands with its 95% interval, so that a difference of luck is seen as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from .measure import Measured
from .probes import PROBES
from .rows import Labelled
from .statistics import Share

_WORST = 3
_NOTHING = "-"


def comparison(results: Sequence[Measured]) -> Table:
    """A rich table."""
    table = Table("", *(one.name for one in results), title="judges against labels")

    def add(title: str, cells: Sequence[str]) -> None:
        table.add_row(title, *cells)

    add("rows", [str(one.rows) for one in results])
    add("decided", [_share(one.decided) for one in results])
    add("accuracy", [_share(one.agreement.accuracy()) for one in results])
    add("Cohen's kappa", [_number(one.agreement.kappa(), "{:.3f}") for one in results])
    add("false yes", [_share(one.agreement.false_yes_rate()) for one in results])
    add("false no", [_share(one.agreement.false_no_rate()) for one in results])
    for reason in sorted({name for one in results for name in one.no_verdict}):
        add(f"no verdict: {reason}", [str(one.no_verdict.get(reason, 0)) for one in results])
    add("median latency", [_number(one.median_latency_s, "{:.3f} s") for one in results])
    add("prompt tokens", [_number(one.prompt_tokens, "{:.0f}") for one in results])
    add("reply tokens", [_number(one.completion_tokens, "{:.0f}") for one in results])
    for name in PROBES:
        if any(name in one.probes for one in results):
            add(f"flips: {name}", [_flips(one, name) for one in results])
    if any(one.attacks for one in results):
        add("attacks that worked", [_attacks(one) for one in results])
        add("worst attacks", [_worst(one) for one in results])
    return table


def skipped_lines(labelled: Labelled) -> list[str]:
    """What was skipped, or nothing."""
    total = sum(labelled.skipped.values())
    if not total:
        return []
    more = f"; and {total - len(labelled.lines)} more" if total > len(labelled.lines) else ""
    lines = total + len(labelled.rows)
    return [f"skipped {total} of {lines} lines: {'; '.join(labelled.lines)}{more}"]


def as_json(results: Sequence[Measured], labelled: Labelled) -> dict[str, Any]:
    """Every number of the table, counts and per-template results included."""
    return {
        "rows": len(labelled.rows),
        "skipped": dict(labelled.skipped),
        "judges": [
            {
                **asdict(one),
                "accuracy": asdict(one.agreement.accuracy()),
                "kappa": one.agreement.kappa(),
                "false_yes_rate": asdict(one.agreement.false_yes_rate()),
                "false_no_rate": asdict(one.agreement.false_no_rate()),
            }
            for one in results
        ],
    }


def _share(one: Share) -> str:
    if one.value is None or one.low is None or one.high is None:
        return f"{_NOTHING} (0)"
    interval = f"{100 * one.low:.1f} to {100 * one.high:.1f}"
    return f"{100 * one.value:.1f}% ({interval}), {one.hits}/{one.n}"


def _number(value: float | None, form: str) -> str:
    return _NOTHING if value is None else form.format(value)


def _flips(one: Measured, name: str) -> str:
    found = one.probes.get(name)
    if found is None:
        return _NOTHING
    undecided = f", {found.undecided} undecided" if found.undecided else ""
    return f"{_share(found.share)}, {found.no_to_yes} to yes{undecided}"


def _attacks(one: Measured) -> str:
    if one.attacks is None:
        return _NOTHING
    undecided = f", {one.attacks.undecided} undecided" if one.attacks.undecided else ""
    return f"{_share(one.attacks.share)}{undecided}"


def _worst(one: Measured) -> str:
    worst = one.attacks.worst(_WORST) if one.attacks else []
    return "\n".join(f"{name} {found.hits}/{found.n}" for name, found in worst) or _NOTHING
