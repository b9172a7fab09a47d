"""What is wrong with an exported folder, said of one tensor or one file at a time.

One design choice: a fault is a name and a sentence. Faults that share the sentence are printed on
one line, so that a lost shard of a thousand tensors does not hide the tensor that is all zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SHOWN = 10
"""Names printed of those that share a problem."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong."""

    name: str
    """The tensor, or the file where it is none of a tensor."""
    problem: str


def fault_lines(faults: Iterable[Fault]) -> list[str]:
    """`PROBLEM: NAME, NAME`, a line for each problem, in the order found."""
    by_problem: dict[str, list[str]] = {}
    for fault in faults:
        by_problem.setdefault(fault.problem, []).append(fault.name)
    return [f"{_names(names)}: {problem}" for problem, names in by_problem.items()]


def _names(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"
