"""Whether the numbers of a tensor can be weights: finite, not all zero, not all the same.

One design choice: bits are looked at, not values, so one rule serves every float format and numpy
needs none of them; a tensor passes through memory in blocks of 16 MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from slime_ext.weights.shape import ModelShape

from .contents import HEAD, embedding_name
from .faults import Fault
from .folder import Weights
from .headers import Stored

BLOCK = 16 * 2**20
_EXPONENT: dict[str, int] = {
    "F64": 0x7FF0000000000000,
    "F32": 0x7F800000,
    "F16": 0x7C00,
    "BF16": 0x7F80,
}
"""Bits of the exponent; all of them set mean infinity or no number."""


@dataclass
class Seen:
    """What was found in a tensor's numbers."""

    not_finite: int = 0
    constant: bool = True
    zero: bool = True
    """Every bit but the sign is 0."""


def check_values(
    weights: Weights, shape: ModelShape | None, reference: Weights | None
) -> Iterator[Fault]:
    """Read every tensor. One that is all zero or all equal passes where the base model's is the
    same constant: an untrained bias is 0 from the start."""
    for name, stored in tqdm(weights.tensors.items(), desc="values", unit="tensor", disable=None):
        if stored.dtype not in _EXPONENT or not stored.numel:
            continue
        seen = look(weights.folder, stored)
        if seen.not_finite:
            share = f"{seen.not_finite:,} of {stored.numel:,}"
            yield Fault(name, f"holds numbers that are not finite ({share})")
        elif (seen.zero or (seen.constant and stored.numel > 1)) and not _base_too(
            name, weights, stored, reference
        ):
            yield Fault(name, "is all zero" if seen.zero else "is the same number throughout")
    if shape is not None and shape.tied_embeddings:
        yield from _tied_head(weights)


def look(folder: Path, stored: Stored) -> Seen:
    """Read one tensor of a float dtype."""
    seen, first = Seen(), None
    for block in blocks(folder, stored):
        if first is None:
            first = block[0]
        exponent = block.dtype.type(_EXPONENT[stored.dtype])
        seen.not_finite += int(np.count_nonzero((block & exponent) == exponent))
        seen.constant = seen.constant and bool((block == first).all())
        # A doubled number has lost its sign.
        seen.zero = seen.zero and not (block << 1).any()
    return seen


def blocks(folder: Path, stored: Stored) -> Iterator[NDArray[np.unsignedinteger]]:
    """The tensor as unsigned whole numbers of its width, in blocks."""
    width = stored.length // max(stored.numel, 1)
    with (folder / stored.file).open("rb") as file:
        file.seek(stored.start)
        left = stored.length
        while left:
            data = file.read(min(left, BLOCK))
            if not data:
                raise OSError(f"{folder / stored.file} became shorter while it was read")
            left -= len(data)
            yield np.frombuffer(data, dtype=f"<u{width}")


def equal(folder: Path, one: Stored, other_folder: Path, other: Stored) -> bool:
    """Whether two tensors have the same shape, dtype and bits."""
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    pairs = zip(blocks(folder, one), blocks(other_folder, other), strict=True)
    return all(np.array_equal(left, right) for left, right in pairs)


def _base_too(name: str, weights: Weights, stored: Stored, reference: Weights | None) -> bool:
    base = reference.tensors.get(name) if reference else None
    if reference is None or base is None or base.dtype not in _EXPONENT:
        return False
    seen, first = look(reference.folder, base), next(blocks(reference.folder, base))[0]
    here = next(blocks(weights.folder, stored))[0]
    return seen.constant and _number(here, stored.dtype) == _number(first, base.dtype)


def _number(bits: np.unsignedinteger, dtype: str) -> float:
    if dtype == "BF16":
        return float((np.array([bits], dtype="<u4") << 16).view("<f4")[0])
    return float(np.array([bits]).view(f"<f{bits.itemsize}")[0])


def _tied_head(weights: Weights) -> Iterator[Fault]:
    head, name = weights.tensors.get(HEAD), embedding_name(weights.tensors)
    if head is None or name is None:
        return
    embedding = weights.tensors[name]
    if not equal(weights.folder, head, weights.folder, embedding):
        yield Fault(HEAD, f"differs from {name}, to which the config ties it")
