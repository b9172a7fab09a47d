"""From a table of flags to the words of a command line.

One design choice: a table keeps one flag a line beside its recipe key, and None or False leaves a
flag out, so that a condition is a value and not a branch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from slime_ext.errors import ExplainedError

Value = str | int | float | bool | Path | list[str] | list[int] | Mapping[str, object] | None

NOT_A_PATH = ("builtin:", "hub:")


class CannotExpressError(ExplainedError, ValueError):
    """The recipe states what slime has no flag for; the message says what to write instead."""


def words(table: Mapping[str, Value]) -> list[str]:
    """`--NAME VALUE...` for every entry: True is a switch, a list several values, a table JSON."""
    found: list[str] = []
    for name, value in table.items():
        if value is None or value is False or value == []:
            continue
        found.append(f"--{name}")
        if value is True:
            continue
        if isinstance(value, list):
            found += [str(one) for one in value]
        elif isinstance(value, Mapping):
            found.append(json.dumps(value, sort_keys=True))
        else:
            found.append(str(value))
    return found


def absolute(path: str) -> str:
    """The path as every process of a job finds it: workers of Ray start in other folders."""
    return path if path.startswith(NOT_A_PATH) else str(Path(path).absolute())
