"""The report as a table for a person and as JSON for a machine.

One design choice: a remedy stands under its finding, where a person who corrects things reads on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from launch.preflight.finding import Finding, Status, exit_code
from launch.terminal import unwrapped_console

STYLES: dict[Status, str] = {"pass": "green", "warn": "yellow", "fail": "bold red", "skip": "dim"}


def show_table(title: str, findings: Sequence[Finding], file: TextIO | None = None) -> None:
    """One row a finding, its remedy under it, details below the table, then the counts."""
    console = unwrapped_console(file)
    table = Table("", "area", "what", "finding", box=None, pad_edge=False, title_justify="left")
    for one in findings:
        # Text, not str: a message may hold brackets, which rich would read as markup.
        status = Text(one.status, style=STYLES[one.status])
        table.add_row(status, one.area, one.name, Text(one.message))
        if one.remedy:
            table.add_row("", "", "", Text(f"-> {one.remedy}"))
    print(title, file=file)
    for line in _lines(console, table):
        print(line, file=file)
    for one in findings:
        if one.details:
            print(f"\n{one.area}, {one.name}:", file=file)
            print("\n".join(one.details), file=file)
    print(f"\n{summary_line(findings)}", file=file)


def summary_line(findings: Sequence[Finding]) -> str:
    """How many findings of each status."""
    counts = Counter(finding.status for finding in findings)
    said = [f"{counts[status]} {status}" for status in STYLES if counts[status]]
    return ", ".join(said) or "nothing was looked at"


def as_json(name: str, findings: Sequence[Finding]) -> str:
    """The findings and the exit code as one JSON object."""
    report = {
        "recipe": name,
        "exit_code": exit_code(findings),
        "findings": [asdict(finding) for finding in findings],
    }
    return json.dumps(report, indent=2)


def _lines(console: Console, table: Table) -> list[str]:
    """The table without the spaces rich fills lines up with."""
    with console.capture() as captured:
        console.print(table)
    return [line.rstrip() for line in captured.get().splitlines()]
