"""What an importer is, and how it takes typed values out of a raw row.

One design choice: `take` names the full path of a missing or mistyped key, so that an importer
reads as a list of the keys its format has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from slime_ext.data.errors import DataError
from slime_ext.data.schema import Row, parse_row

T = TypeVar("T")
_REQUIRED: Any = object()


@dataclass(frozen=True)
class Importer:
    """One format: `fields(raw)` gives the row's fields without `id`.

    `id_keys` are the top-level keys that may hold the id (the first present counts); an empty tuple
    means that rows have no id and are named FORMAT:LINE. `keys` maps row fields to raw keys.
    """

    name: str
    id_keys: tuple[str, ...]
    fields: Callable[[Mapping[str, Any]], dict[str, Any]]
    keys: dict[str, str] = field(default_factory=dict)

    def row(self, raw: Any, line: int) -> Row:
        """The validated row of the JSON value on `line` (from 1); raises DataError."""
        if not isinstance(raw, dict):
            raise DataError(
                f"a row must be a JSON object, not {type(raw).__name__}",
                remedy="write one object, {...}, on each line",
            )
        keys = self.keys
        if self.id_keys:
            key = next((k for k in self.id_keys if k in raw), self.id_keys[0])
            identity = take(raw, key, str)
            keys = {**keys, "id": key}
        else:
            identity = line_id(self.name, line)
        return parse_row({**self.fields(raw), "id": identity}, keys)


def line_id(format: str, line: int) -> str:
    """Identity of a row whose format has none: format and line number, from 1."""
    return f"{format}:{line}"


def take(raw: Mapping[str, Any], path: str, kind: type[T], default: T = _REQUIRED) -> T:
    """The value at dotted `path`; raises DataError where it is missing or not of `kind`."""
    value: Any = raw
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            if default is not _REQUIRED:
                return default
            raise DataError("this key is required", key=path, remedy="check data.format")
        value = value[part]
    if not isinstance(value, kind):
        raise DataError(
            f"should be {kind.__name__}, got {type(value).__name__}",
            key=path,
            remedy="check data.format",
        )
    return value
