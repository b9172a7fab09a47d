"""The weights of a torch_dist checkpoint: which tensors, in which pieces, where in which file.

One design choice: everything is read from the index and `common.pt` as data (`pickles.py`), so this
needs neither torch nor Megatron, and a checkpoint that is not whole is refused before a byte of a
tensor is read.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slime_ext.errors import ExplainedError
from slime_ext.weights.checkpoints import incomplete
from slime_ext.weights.pickles import (
    BrokenPickleError,
    Record,
    global_path,
    read_pickle,
    read_torch_file,
)
from slime_ext.weights.torch_dist import METADATA, OPTIMISER

_INDEX = "torch.distributed.checkpoint.metadata."
_LISTED = 5
"""Names that an error lists before it only counts."""


class StoredError(ExplainedError, ValueError):
    """A checkpoint that is not whole, or holds something other than it says."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A box of a tensor: `length` bytes from `offset` of a file, as torch.save wrote them."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    file: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor, whose chunks cover it exactly once."""

    name: str
    dtype: str
    """As torch names it, without `torch.`: bfloat16, float32."""
    shape: tuple[int, ...]
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """The weights of a checkpoint. Optimiser state and objects that are no tensors are counted."""

    folder: Path
    tensors: dict[str, StoredTensor]
    args: Record | None
    """Megatron's arguments, where `common.pt` holds them."""
    iteration: int | None
    optimiser_tensors: int
    objects: int


def read_stored(folder: Path) -> StoredCheckpoint:
    """The weights of the torch_dist checkpoint `folder` (`iter_NNNNNNN`).

    Raises StoredError for one that is still being written, cut off, damaged, or mixed from several
    saves; FileNotFoundError where there is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder; name a checkpoint folder iter_NNNNNNN")
    fault = incomplete(folder)
    if fault is not None:
        raise StoredError(
            f"{folder} is no whole torch_dist checkpoint: {fault}. It is still being written, or "
            "its writing or copying was cut short: wait for it, copy it again, or name an older one"
        )
    try:
        index = read_pickle((folder / METADATA).read_bytes())
        common = read_torch_file(folder / "common.pt")
        tensors, optimiser, objects = _tensors(folder, index)
    except BrokenPickleError as error:
        raise StoredError(f"{folder / 'common.pt'} is {error}; copy the checkpoint again") from None
    except (AttributeError, TypeError) as error:
        raise StoredError(f"{folder / METADATA} is not an index that we know: {error}") from None
    _one_save(folder, index)
    common = common if isinstance(common, dict) else {}
    args, iteration = common.get("args"), common.get("iteration")
    return StoredCheckpoint(
        folder=folder,
        tensors=tensors,
        args=args if isinstance(args, Record) else None,
        iteration=iteration if isinstance(iteration, int) else None,
        optimiser_tensors=optimiser,
        objects=objects,
    )


def listed(names: list[str]) -> str:
    """The first names of a list, and how many there are."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _tensors(folder: Path, index: Any) -> tuple[dict[str, StoredTensor], int, int]:
    """All weights; how many tensors are optimiser state, how many entries are no tensors."""
    places: dict[str, dict[tuple[int, ...], Any]] = defaultdict(dict)
    for key, place in index.storage_data.items():
        offset = getattr(key, "offset", None)
        if offset is not None:
            places[key.fqn][_size(offset)] = place
    tensors: dict[str, StoredTensor] = {}
    counts: Counter[str] = Counter()
    for name, entry in index.state_dict_metadata.items():
        if entry.path != f"{_INDEX}TensorStorageMetadata":
            counts["object"] += 1
        elif OPTIMISER.match(name):
            counts["optimiser"] += 1
        else:
            tensors[name] = _tensor(folder, name, entry, places[name])
    return tensors, counts["optimiser"], counts["object"]


def _tensor(
    folder: Path, name: str, entry: Any, places: dict[tuple[int, ...], Any]
) -> StoredTensor:
    shape = _size(entry.size)
    chunks = []
    for chunk in entry.chunks:
        offsets = _size(chunk.offsets)
        place = places.get(offsets)
        if place is None:
            raise StoredError(f"{folder / METADATA} says not where {name} {offsets} lies")
        if getattr(place, "transform_descriptors", None):
            raise StoredError(f"{folder}: {name} is stored compressed, which is not supported")
        chunks.append(
            Chunk(offsets, _size(chunk.sizes), place.relative_path, place.offset, place.length)
        )
    covered = sum(math.prod(chunk.sizes) for chunk in chunks)
    if covered != math.prod(shape):
        raise StoredError(
            f"{folder}: the pieces of {name} hold {covered:,} of {math.prod(shape):,} numbers; the "
            "index belongs to a save by another number of processes, or ranks are missing: copy "
            "the whole checkpoint again, or name another one"
        )
    # A tuple is what TensorProperties pickles itself as: dtype first.
    dtype = global_path(entry.properties.state[0]).removeprefix("torch.")
    return StoredTensor(name, dtype, shape, tuple(chunks))


def _one_save(folder: Path, index: Any) -> None:
    """Files that the index does not know come from a save by another number of processes."""
    known = {place.relative_path for place in index.storage_data.values()}
    strange = sorted(
        path.name
        for path in folder.glob("*.distcp")
        if path.name not in known and path.stat().st_size
    )
    if strange:
        raise StoredError(
            f"{folder} is mixed from saves by different numbers of processes: {METADATA} names "
            f"{len(known)} files and not {listed(strange)}. If those are left over from an older "
            "save, move them away; otherwise name another checkpoint"
        )


def _size(value: Any) -> tuple[int, ...]:
    """A `torch.Size`, which pickles as a call with one tuple."""
    numbers = value.args[0] if isinstance(value, Record) else value
    return tuple(int(number) for number in numbers)
