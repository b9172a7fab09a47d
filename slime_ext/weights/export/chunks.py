"""Rows of a stored piece, read by position.

One design choice: a piece is an archive of torch.save with one uncompressed storage in it, so rows
are found by arithmetic and read straight from the checkpoint's file; the piece is never loaded.
What the archive says of shape and dtype must be what the index says, which finds pieces of another
save.
"""

from __future__ import annotations

import io
import math
import os
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from slime_ext.weights.export.plan import ITEM_BYTES
from slime_ext.weights.pickles import BrokenPickleError, Record, global_path, member, read_pickle
from slime_ext.weights.stored import Chunk, StoredError, StoredTensor

_STORAGES = {
    "torch.BFloat16Storage": "bfloat16",
    "torch.HalfStorage": "float16",
    "torch.FloatStorage": "float32",
}
_LOCAL_HEADER = struct.Struct("<26xHH")
"""Of a member of a zip archive: its name and extra field have these lengths, data follows."""
_NOT_AN_ARCHIVE = (zipfile.BadZipFile, BrokenPickleError, KeyError, EOFError, struct.error)


@dataclass(frozen=True, slots=True)
class _Storage:
    """The numbers of a piece: `start` in the file, and steps between neighbours on each axis."""

    start: int
    strides: tuple[int, ...]


class ChunkReader:
    """Reads pieces of a checkpoint; a context manager that closes the files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, int] = {}
        self._storages: dict[tuple[str, int], _Storage] = {}

    def __enter__(self) -> ChunkReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def read(
        self, tensor: StoredTensor, chunk: Chunk, lead: tuple[int, ...], first: int, last: int
    ) -> NDArray[np.uint8]:
        """Rows [first, last) of the piece below the indices `lead`, both counted within the piece,
        as bytes [rows, bytes of a row].

        Raises StoredError where the piece is not what the index says or ends too early.
        """
        storage = self._storage(tensor, chunk)
        item = ITEM_BYTES[tensor.dtype]
        rest = chunk.sizes[len(lead) + 1 :]
        start = sum(i * step for i, step in zip((*lead, first), storage.strides, strict=False))
        steps = storage.strides[len(lead) :]
        if steps == _contiguous((last - first, *rest)):
            data = self._bytes(
                chunk, storage.start + start * item, (last - first) * steps[0] * item
            )
            return data.reshape(last - first, -1)
        # Megatron's non-TE grouped experts are stored transposed.
        shape = (last - first, *rest)
        reach = 1 + sum((size - 1) * step for size, step in zip(shape, steps, strict=True))
        flat = self._bytes(chunk, storage.start + start * item, reach * item)
        numbers = flat.view(f"u{item}")
        view = np.lib.stride_tricks.as_strided(numbers, shape, [step * item for step in steps])
        return np.ascontiguousarray(view).view(np.uint8).reshape(last - first, -1)

    def _bytes(self, chunk: Chunk, start: int, length: int) -> NDArray[np.uint8]:
        data = np.empty(length, np.uint8)
        view, done = data.data, 0
        while done < length:
            got = os.preadv(self._open(chunk.file), [view[done:]], start + done)
            if not got:
                raise StoredError(f"{self.folder / chunk.file} was cut short while it was read")
            done += got
        return data

    def _open(self, name: str) -> int:
        if name not in self._files:
            self._files[name] = os.open(self.folder / name, os.O_RDONLY)
        return self._files[name]

    def _storage(self, tensor: StoredTensor, chunk: Chunk) -> _Storage:
        key = (chunk.file, chunk.offset)
        if key not in self._storages:
            try:
                self._storages[key] = self._parse(tensor, chunk)
            except _NOT_AN_ARCHIVE as error:
                raise self._mixed(tensor, chunk, f"holds no tensor there ({error})") from None
        return self._storages[key]

    def _parse(self, tensor: StoredTensor, chunk: Chunk) -> _Storage:
        with zipfile.ZipFile(_Slice(self._open(chunk.file), chunk.offset, chunk.length)) as archive:
            made = read_pickle(member(archive, "data.pkl"))
            if not isinstance(made, Record) or not made.path.endswith("._rebuild_tensor_v2"):
                raise BrokenPickleError("no plain tensor")
            (_, kind, key, _, count), first, size, strides = made.args[:4]
            found = [i for i in archive.infolist() if i.filename.endswith(f"/data/{key}")]
            if not found or found[0].compress_type != zipfile.ZIP_STORED:
                raise KeyError(f"data/{key}")
        dtype = _STORAGES.get(global_path(kind), global_path(kind))
        if dtype != tensor.dtype or tuple(size) != chunk.sizes:
            raise self._mixed(tensor, chunk, f"holds {dtype} {tuple(size)} there")
        item = ITEM_BYTES[tensor.dtype]
        reach = first + 1 + sum((n - 1) * step for n, step in zip(size, strides, strict=True))
        if found[0].file_size != count * item or reach > count:
            raise self._mixed(tensor, chunk, "holds fewer numbers than it says")
        local = chunk.offset + found[0].header_offset
        name, extra = _LOCAL_HEADER.unpack(
            os.pread(self._open(chunk.file), _LOCAL_HEADER.size, local)
        )
        start = local + _LOCAL_HEADER.size + name + extra + first * item
        return _Storage(start, tuple(strides))

    def _mixed(self, tensor: StoredTensor, chunk: Chunk, found: str) -> StoredError:
        return StoredError(
            f"{self.folder / chunk.file}: the index places {tensor.name} {tensor.dtype} "
            f"{chunk.sizes} at byte {chunk.offset}, and the file {found}; index and files are of "
            "different saves, or the file is damaged: copy the checkpoint again"
        )


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


class _Slice(io.RawIOBase):
    """A part of an open file as a file of its own."""

    def __init__(self, file: int, start: int, length: int) -> None:
        self._file, self._start, self._length, self._place = file, start, length, 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._length}[whence]
        if base + offset < 0:
            raise zipfile.BadZipFile("offset before the start")
        self._place = base + offset
        return self._place

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._length - self._place)
        wanted = left if size is None or size < 0 else min(size, left)
        data = os.pread(self._file, wanted, self._start + self._place)
        self._place += len(data)
        return data
