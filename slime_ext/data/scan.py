"""One pass over a JSONL file: where each line starts, and the id of its row.

One design choice: a line that begins with its id key is not parsed; the regular expression reads
the first key of the outermost object, which is the top-level id by construction. All other lines
are parsed whole. Blank lines are errors, so row i is always line i + 1.
"""

from __future__ import annotations

import hashlib
import os
import re
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from tqdm import tqdm

from slime_ext.data.errors import DataError
from slime_ext.data.importers.base import Importer, line_id

_BOM = b"\xef\xbb\xbf"
_NOT_JSONL = {
    b"PAR1": ("a parquet file", "convert it: pyarrow.parquet.read_table(FILE) to JSON Lines"),
    b"\x1f\x8b": ("gzip-compressed", "run gunzip on it"),
    b"\x28\xb5\x2f\xfd": ("zstd-compressed", "run zstd -d on it"),
    b"\xff\xfe": ("UTF-16 text", "save it as UTF-8"),
    b"\xfe\xff": ("UTF-16 text", "save it as UTF-8"),
}
_ROW_ENDS = (b"}\n", b"}\r\n", b"}")
_BUFFER = 1 << 20
_REPORT_BYTES = 1 << 26


def id_hash(identity: str) -> int:
    """64-bit hash of an id, equal in every process (BLAKE2b)."""
    return int.from_bytes(_digest(identity.encode()), "little")


def scan_lines(path: Path, importer: Importer) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Offsets [rows + 1] of line starts (bytes; the last is the file size) and id hashes [rows].

    Linear in the file, memory of two numbers a row. Raises DataError for a file that is empty, not
    JSON Lines, cut in its last line, has a blank line, or a row without an id.
    """
    offsets, digests = array("Q"), bytearray()
    identify = _identifier(path, importer)
    size = path.stat().st_size
    position = reported = 0
    line = b""
    with path.open("rb", buffering=_BUFFER) as file, _bar(path, size) as bar:
        for line in file:
            start = position
            position += len(line)
            if start == 0:
                _check_head(path, line)
                start = len(_BOM) if line.startswith(_BOM) else 0
                line = line[start:]
            offsets.append(start)
            digests += _digest(identify(line, len(offsets)))
            if position - reported >= _REPORT_BYTES:
                bar.update(position - reported)
                reported = position
    if not offsets:
        raise DataError("the file is empty", file=path, remedy="write one JSON object on each line")
    _check_tail(path, line, len(offsets))
    offsets.append(position)
    return np.frombuffer(offsets, np.uint64), np.frombuffer(digests, "<u8").astype(np.uint64)


def parse_line(path: Path, line: bytes, number: int) -> Any:
    """The JSON value of one line; raises DataError with file and line."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        problem, remedy = f"invalid JSON: {error}", "repair or remove the line"
    if not line.strip():
        problem, remedy = "the line is blank", "remove it; each line holds one row"
    elif not line.rstrip().endswith(b"}") and line.lstrip().startswith(b"{"):
        problem, remedy = "the row is cut off", "a row is one whole line; write the file again"
    raise DataError(problem, file=path, line=number, remedy=remedy)


def row_id(importer: Importer, path: Path, line: bytes, number: int) -> str:
    """The id of a raw line, parsed in full; raises DataError."""
    if not importer.id_keys:
        return line_id(importer.name, number)
    raw = parse_line(path, line, number)
    if not isinstance(raw, dict):
        raise DataError(
            f"a row must be a JSON object, not {type(raw).__name__}",
            file=path,
            line=number,
            remedy="write one object, {...}, on each line",
        )
    key = next((k for k in importer.id_keys if k in raw), importer.id_keys[0])
    value = raw.get(key)
    if not isinstance(value, str) or not value.strip():
        problem = "must be a string that is not blank" if key in raw else "this key is required"
        raise DataError(problem, key=key, file=path, line=number, remedy="give each row its own id")
    return value


def _identifier(path: Path, importer: Importer) -> Callable[[bytes, int], bytes]:
    """A function (line, number) -> id as bytes, by the shortest way the format allows."""
    if not importer.id_keys:

        def by_number(line: bytes, number: int) -> bytes:
            if not line.endswith(_ROW_ENDS):
                parse_line(path, line, number)
            return line_id(importer.name, number).encode()

        return by_number

    # Only the first of the alternatives: a later one counts only where the first is absent.
    key = re.escape(importer.id_keys[0].encode())
    value = rb'"([^"\\\x00-\x1f]*[^"\\\x00-\x20])"'
    first_key = re.compile(rb'\s*\{\s*"' + key + rb'"\s*:\s*' + value).match

    def by_key(line: bytes, number: int) -> bytes:
        match = first_key(line)
        if match and line.endswith(_ROW_ENDS):
            return match[1]
        return row_id(importer, path, line, number).encode()

    return by_key


def _digest(identity: bytes) -> bytes:
    return hashlib.blake2b(identity, digest_size=8).digest()


def _check_head(path: Path, line: bytes) -> None:
    for magic, (what, remedy) in _NOT_JSONL.items():
        if line.startswith(magic):
            raise DataError(f"this is {what}, not JSON Lines", file=path, remedy=remedy)
    if line.removeprefix(_BOM).lstrip().startswith(b"["):
        raise DataError(
            "this is one JSON array, not JSON Lines",
            file=path,
            line=1,
            remedy="write one row on each line, e.g. with: jq -c '.[]' FILE > FILE.jsonl",
        )


def _check_tail(path: Path, line: bytes, number: int) -> None:
    """Parse the last line, the one an interrupted copy cuts."""
    parse_line(path, line, number)


def _bar(path: Path, size: int) -> tqdm[Any]:
    return tqdm(
        total=size,
        desc=f"index {os.path.basename(path)}",
        unit="B",
        unit_scale=True,
        disable=None if size > _REPORT_BYTES else True,
    )
