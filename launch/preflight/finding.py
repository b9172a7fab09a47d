"""A finding of the preflight: what was looked at, how it stands, and what to type instead.

One design choice: "not looked at" is a status of its own. What a laptop cannot see of a cluster is
listed as skipped with the reason; it neither passes nor fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Status = Literal["pass", "warn", "fail", "skip"]

EXIT_CODES: dict[Status, int] = {"pass": 0, "skip": 0, "warn": 1, "fail": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; `details` are printed below the table."""

    area: str
    name: str
    status: Status
    message: str
    remedy: str = ""
    details: tuple[str, ...] = ()


@dataclass(slots=True)
class Area:
    """Collects the findings of one area."""

    name: str
    findings: list[Finding] = field(default_factory=list)

    def ok(self, name: str, message: str, details: Iterable[str] = ()) -> None:
        """In order."""
        self._add(name, "pass", message, "", details)

    def warn(self, name: str, message: str, remedy: str, details: Iterable[str] = ()) -> None:
        """The run may go on and may be worth less."""
        self._add(name, "warn", message, remedy, details)

    def fail(self, name: str, message: str, remedy: str, details: Iterable[str] = ()) -> None:
        """The run would end, or train on something wrong."""
        self._add(name, "fail", message, remedy, details)

    def skip(self, name: str, message: str) -> None:
        """Not looked at, and why."""
        self._add(name, "skip", message, "", ())

    def _add(
        self, name: str, status: Status, message: str, remedy: str, details: Iterable[str]
    ) -> None:
        self.findings.append(Finding(self.name, name, status, message, remedy, tuple(details)))


def exit_code(findings: Iterable[Finding]) -> int:
    """0 where all passed or were skipped, 1 with warnings, 2 with failures."""
    return max((EXIT_CODES[finding.status] for finding in findings), default=0)
