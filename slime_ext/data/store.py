"""Rows of a JSONL file by position or id, one line parsed at a time.

One design choice: lines are read with `pread`, not mapped. A mapped file of many GB grows the
process as it is read, and a file cut short under a mapping kills it; a short read is an error here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from slime_ext.data.errors import DataError
from slime_ext.data.importers import importer_for
from slime_ext.data.index import open_index
from slime_ext.data.scan import id_hash, parse_line
from slime_ext.data.schema import Row


class RowStore:
    """Random access to the rows of `path`; memory does not grow with the file.

    `format` names an importer. The index lies beside the file, or in `cache`. Raises DataError for
    an unknown format and for a file that cannot be indexed. A row is checked when it is read.
    """

    def __init__(self, path: Path, format: str = "longrl", cache: Path | None = None) -> None:
        self.path = Path(path)
        self.cache = cache
        self.importer = importer_for(format)
        self._index = open_index(self.path, self.importer, cache)
        self._file = self.path.open("rb", buffering=0)

    def __reduce__(self) -> tuple[type[RowStore], tuple[Path, str, Path | None]]:
        # A descriptor means nothing in another process: open again there.
        return RowStore, (self.path, self.importer.name, self.cache)

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[Row]:
        for position in range(len(self)):
            yield self.row(position)

    @property
    def fingerprint(self) -> str:
        """Hash of ids and line lengths, equal for a copy of the file elsewhere."""
        return f"{self._index.fingerprint:016x}"

    def row(self, position: int) -> Row:
        """The validated row at `position` (from 0), which stands on line `position` + 1.

        Raises IndexError outside the file, DataError (file, line, key) for a bad row.
        """
        if not 0 <= position < len(self):
            raise IndexError(f"row {position} of {self.path}, which has {len(self)} rows")
        line = position + 1
        try:
            row = self.importer.row(parse_line(self.path, self._line(position), line), line)
        except DataError as error:
            raise error.at(self.path, line) from None
        if int(self._index.hashes[position]) != id_hash(row.id):
            raise DataError(
                f"{row.id!r} is not the id the index has for this line",
                file=self.path,
                line=line,
                key="id",
                remedy="write the id once; if the file was edited in place, `touch` it",
            )
        return row

    def position(self, identity: str) -> int:
        """The position of the row with this id; raises KeyError where there is none."""
        for position in self._index.positions(identity):
            if self.row(position).id == identity:
                return position
        raise KeyError(f"{self.path} has no row with the id {identity!r}")

    def _line(self, position: int) -> bytes:
        start, end = (int(value) for value in self._index.offsets[position : position + 2])
        line = os.pread(self._file.fileno(), end - start, start)
        if len(line) != end - start:
            raise DataError("the file is shorter than when it was opened", remedy="restore it")
        return line
