"""The index of a JSONL file on disk: line offsets and id hashes, mapped into memory.

One design choice: one flat uint64 array in one .npy file, its header included, so that writing it
is a single rename and opening it costs no more than mapping it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slime_ext.data.errors import DataError
from slime_ext.data.importers.base import Importer
from slime_ext.data.scan import id_hash, row_id, scan_lines

logger = logging.getLogger(__name__)

_VERSION = 1
_HEADER = 6
"""version, file size, mtime_ns, hash of the format, rows, fingerprint"""


@dataclass(frozen=True)
class Index:
    """Rows of one file: `offsets` [rows + 1] bytes, `hashes` [rows], `order` sorts the hashes.

    `fingerprint` identifies the file's rows (ids and line lengths), wherever the file lies.
    """

    offsets: NDArray[np.uint64]
    hashes: NDArray[np.uint64]
    order: NDArray[np.int64]
    fingerprint: int

    def __len__(self) -> int:
        return len(self.hashes)

    def positions(self, identity: str) -> list[int]:
        """Rows whose id has the hash of `identity`; more than one only where hashes collide."""
        wanted = np.uint64(id_hash(identity))
        left = int(np.searchsorted(self.hashes, wanted, "left", sorter=self.order))
        right = int(np.searchsorted(self.hashes, wanted, "right", sorter=self.order))
        return [int(row) for row in self.order[left:right]]


def open_index(path: Path, importer: Importer, cache: Path | None) -> Index:
    """The index of `path`, from disk where it is fresh, else built and stored.

    Stored beside the file, or in the folder `cache`. Fresh means: same size, mtime and format.
    Where the folder cannot be written the index lives in memory and a warning says so. Raises
    DataError.
    """
    try:
        before = path.stat()
    except FileNotFoundError:
        raise DataError(
            "there is no such file", file=path, remedy="check the path in [data]"
        ) from None
    if not path.is_file():
        raise DataError("this is a folder", file=path, remedy="name a JSONL file inside it")
    key = [_VERSION, before.st_size, before.st_mtime_ns, id_hash(importer.name)]
    place = _place(path, importer, cache)
    stored = _read(place, key)
    if stored is not None:
        return stored
    offsets, hashes = scan_lines(path, importer)
    after = path.stat()
    if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise DataError(
            "the file changed while it was read", file=path, remedy="start when it is written"
        )
    order = np.argsort(hashes, kind="stable")
    _refuse_duplicates(path, importer, offsets, hashes, order)
    digest = hashlib.blake2b(offsets.tobytes() + hashes.tobytes(), digest_size=8).digest()
    header = [*key, len(hashes), int.from_bytes(digest, "little")]
    flat = np.concatenate([np.array(header, np.uint64), offsets, hashes, order.astype(np.uint64)])
    _write(place, flat)
    return _split(flat)


def _place(path: Path, importer: Importer, cache: Path | None) -> Path:
    if cache is None:
        return path.with_name(f"{path.name}.{importer.name}.index.npy")
    # The folder is part of the name: two runs may cache files that share a name.
    folder = hashlib.blake2b(str(path.resolve().parent).encode(), digest_size=6).hexdigest()
    return cache / f"{path.name}.{folder}.{importer.name}.index.npy"


def _read(place: Path, key: list[int]) -> Index | None:
    """The stored index, or None where there is none, or an old or damaged one."""
    try:
        flat = np.load(place, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    if flat.dtype != np.uint64 or flat.ndim != 1 or len(flat) < _HEADER:
        return None
    rows = int(flat[4])
    if [int(value) for value in flat[:4]] != key or len(flat) != _HEADER + 3 * rows + 1:
        return None
    return _split(flat)


def _split(flat: NDArray[np.uint64]) -> Index:
    rows = int(flat[4])
    offsets, rest = flat[_HEADER : _HEADER + rows + 1], flat[_HEADER + rows + 1 :]
    return Index(offsets, rest[:rows], rest[rows:].view(np.int64), int(flat[5]))


def _write(place: Path, flat: NDArray[np.uint64]) -> None:
    temporary = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            np.save(file, flat)
        temporary.replace(place)
    except OSError as error:
        logger.warning(
            "cannot store the index %s (%s); it is built again at each start, pass a folder that "
            "can be written as cache",
            place,
            error.strerror,
        )
        with contextlib.suppress(OSError):
            temporary.unlink()


def _refuse_duplicates(
    path: Path,
    importer: Importer,
    offsets: NDArray[np.uint64],
    hashes: NDArray[np.uint64],
    order: NDArray[np.int64],
) -> None:
    """Raise DataError for the first id on two lines, naming both; equal hashes are compared."""
    in_order = hashes[order]
    equal = np.flatnonzero(in_order[1:] == in_order[:-1])
    if not len(equal):
        return
    with path.open("rb") as file:
        for place in equal:
            found = []
            for row in (int(order[place]), int(order[place + 1])):
                file.seek(int(offsets[row]))
                line = file.read(int(offsets[row + 1] - offsets[row]))
                found.append((row_id(importer, path, line, row + 1), row + 1))
            (identity, first), (other, second) = found
            if identity == other:
                raise DataError(
                    f"{identity!r} is the id of line {first} and of line {second}"
                    + (f" ({len(equal)} repeated ids in all)" if len(equal) > 1 else ""),
                    file=path,
                    line=second,
                    key=importer.id_keys[0] if importer.id_keys else None,
                    remedy="make ids unique or remove one of the rows",
                )
