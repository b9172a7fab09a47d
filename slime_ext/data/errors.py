"""Data errors that say where the bad value stands and what to do about it.

One design choice: the parts of the message (file, line, key, remedy) are attributes too, and are
filled in by whoever knows them, so a check deep in a row needs to know neither file nor line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from slime_ext.errors import ExplainedError, nearest


class DataError(ExplainedError, ValueError):
    """Data that cannot be used: `FILE:LINE: KEY: problem; remedy`, as far as each is known.

    `line` counts from 1; `key` is a path such as `context[3].text`.
    """

    def __init__(
        self,
        problem: str,
        *,
        remedy: str | None = None,
        key: str | None = None,
        file: Path | None = None,
        line: int | None = None,
    ) -> None:
        self.problem = problem
        self.remedy = remedy
        self.key = key
        self.file = file
        self.line = line
        super().__init__(problem)

    def at(self, file: Path, line: int | None) -> DataError:
        """The same error with its place filled in; a place that is known already is kept."""
        self.file = self.file or file
        self.line = self.line or line
        return self

    def __str__(self) -> str:
        place = ""
        if self.file is not None:
            place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        key = f"{self.key}: " if self.key else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{place}{key}{self.problem}{remedy}"


def row_problem(key: str, problem: str, remedy: str) -> PydanticCustomError:
    """What a validator of the row schema raises; `explain` turns it into a `DataError`."""
    context = {"key": key, "problem": problem, "remedy": remedy}
    return PydanticCustomError("row", "{key}: {problem}; {remedy}", context)


def explain(
    error: ValidationError, keys: Mapping[str, str], known: Mapping[str, Iterable[str]]
) -> DataError:
    """The first problem pydantic found, and how many more there are.

    `keys` maps a field of the row to the key it was read from in the file. `known` lists the keys
    the schema has inside each top-level field, and under "" the top-level fields themselves.
    """
    problems = error.errors()
    first = problems[0]
    key = _dotted(first["loc"])
    remedy: str | None = None
    if first["type"] == "row":
        context = first["ctx"]
        key, problem, remedy = context["key"], context["problem"], context["remedy"]
    elif first["type"] == "extra_forbidden":
        problem = "unknown key"
        inside = str(first["loc"][0]) if len(first["loc"]) > 1 else ""
        remedy = nearest(str(first["loc"][-1]), known[inside])
    elif first["type"] == "missing":
        problem, remedy = "this key is required", "add it to the row"
    else:
        problem = f"{first['msg'][0].lower()}{first['msg'][1:]}, got {_shown(first)}"
    if len(problems) > 1:
        problem += f" (and {len(problems) - 1} more in this row)"
    head, bracket, tail = key.partition("[")
    field, dot, rest = head.partition(".")
    shown = keys.get(field, field) + dot + rest + bracket + tail
    return DataError(problem, key=shown, remedy=remedy)


def _dotted(location: tuple[int | str, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _shown(problem: ErrorDetails) -> str:
    """The offending value, short: a row of this project may be 500 KB long."""
    value = repr(problem["input"])
    return value if len(value) <= 60 else f"{value[:57]}..."
