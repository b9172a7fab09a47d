"""Importers: one file for each format of rows, and the registry of their names.

One design choice: an importer is a pure function from the raw JSON object to the fields of a row
plus a map of field names for error messages; validation is the row schema's alone.
"""

from __future__ import annotations

from slime_ext.data.errors import DataError
from slime_ext.data.importers.base import Importer
from slime_ext.data.importers.hotpotqa import HOTPOTQA
from slime_ext.data.importers.longrl import LONGRL
from slime_ext.data.importers.longrlvr import LONGRLVR
from slime_ext.data.importers.longtracerl import LONGTRACERL
from slime_ext.data.importers.musique import MUSIQUE
from slime_ext.errors import nearest

IMPORTERS: dict[str, Importer] = {
    importer.name: importer for importer in (LONGRL, MUSIQUE, HOTPOTQA, LONGTRACERL, LONGRLVR)
}


def importer_for(format: str) -> Importer:
    """The importer registered under `format`; raises DataError with the nearest name."""
    if format not in IMPORTERS:
        raise DataError(
            f"unknown data format {format!r}", key="data.format", remedy=nearest(format, IMPORTERS)
        )
    return IMPORTERS[format]


__all__ = ["IMPORTERS", "Importer", "importer_for"]
