"""The headers of safetensors files: names, dtypes, shapes and places of tensors, without torch.

One design choice: a header is believed only where it adds up. Tensors must fill the file from its
first byte to its last without gap or overlap, so a file cut off, padded or patched is found without
its data being read.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BYTES = {
    **{"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1},
    **{"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1},
}
"""Bytes of one number, by the format's word for its dtype."""
TORCH_NAME = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""What config.json calls the dtypes that weights come in."""
LARGEST = 100_000_000
"""Bytes of a header; the format's own limit."""


class BrokenFileError(ValueError):
    """A file that is no whole safetensors file."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One tensor in a file."""

    file: str
    dtype: str
    """The format's word, e.g. "BF16"."""
    shape: tuple[int, ...]
    start: int
    """First byte, counted from the start of the file."""
    length: int
    """Bytes."""

    @property
    def numel(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)

    @property
    def dtype_name(self) -> str:
        """The dtype in torch's words, e.g. "bfloat16"; the format's where torch has none."""
        return TORCH_NAME.get(self.dtype, self.dtype)


def read_header(path: Path) -> dict[str, Stored]:
    """The tensors of one file, in the order of their bytes.

    Raises BrokenFileError for a file that is cut off or no safetensors file, OSError where it
    cannot be read.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        words = file.read(8)
        length = struct.unpack("<Q", words)[0] if len(words) == 8 else LARGEST + 1
        if length > min(LARGEST, size - 8):
            raise BrokenFileError("cut off, or no safetensors file: no room for its header")
        try:
            table = json.loads(file.read(length))
        except ValueError as error:
            raise BrokenFileError(f"its header is damaged ({error})") from None
    if not isinstance(table, dict):
        raise BrokenFileError("its header is no table of tensors")
    table.pop("__metadata__", None)
    found = {name: _stored(path.name, name, one, 8 + length) for name, one in table.items()}
    ordered = dict(sorted(found.items(), key=lambda item: item[1].start))
    _adds_up(ordered, 8 + length, size)
    return ordered


def _stored(file: str, name: str, entry: Any, data: int) -> Stored:
    try:
        dtype, shape = entry["dtype"], tuple(int(n) for n in entry["shape"])
        first, last = (int(n) for n in entry["data_offsets"])
        width = BYTES[dtype]
    except (KeyError, TypeError, ValueError):
        raise BrokenFileError(f"its header says of {name}: {entry!r}") from None
    if min(shape, default=0) < 0 or last - first != math.prod(shape) * width:
        raise BrokenFileError(
            f"{name} is {list(shape)} of {dtype}, {math.prod(shape) * width} bytes, but its "
            f"header gives it {last - first}"
        )
    return Stored(file, dtype, shape, data + first, last - first)


def _adds_up(tensors: dict[str, Stored], data: int, size: int) -> None:
    place = data
    for name, one in tensors.items():
        if one.start != place:
            raise BrokenFileError(f"{name} begins at byte {one.start}, {place} was expected")
        place += one.length
    if place != size:
        last = next(reversed(tensors), "its header")
        raise BrokenFileError(
            f"it has {size} bytes, its header says {place}"
            + (f": cut off before the end of {last}" if place > size else "")
        )
