"""The project's own format: the row schema as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slime_ext.data.importers.base import Importer


def fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The object itself; unknown keys are refused by the schema."""
    return dict(raw)


LONGRL = Importer("longrl", ("id",), fields)
