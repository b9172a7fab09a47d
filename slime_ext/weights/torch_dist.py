"""What lies where in a checkpoint of Megatron's torch_dist format, and its copy without optimiser.

One design choice: bytes are copied, tensors never made. `.metadata` says which bytes of which file
belong to which tensor, so a copy needs no GPU, no Megatron and no memory. It is a pickle, and a
pickle can run anything: read here, every class in it is an inert record, and one of torch's own
value classes only where it must be written again.
"""

from __future__ import annotations

import importlib
import pickle
import re
import shutil
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from slime_ext.weights.pickles import BrokenPickleError, Records, read_pickle

METADATA = ".metadata"
OPTIMISER = re.compile(r"(chained_\d+\.)?optimizer\.")
"""Start of the keys of optimiser state; Megatron numbers the parts of a chained optimiser."""
_BLOCK = 16 * 2**20
_PATHS = {("pathlib", "PosixPath"), ("pathlib._local", "PosixPath")}
_VALUES = "torch.distributed.checkpoint.metadata"
_PLACE = ("torch.distributed.checkpoint.filesystem", "_StorageInfo")


class BrokenIndexError(ValueError):
    """`.metadata` is not the index of a checkpoint."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor, or a part of one: `length` bytes from `offset` in a file of the checkpoint."""

    key: str
    file: str
    offset: int
    length: int


def pieces(checkpoint: Path) -> list[Piece]:
    """All pieces of a checkpoint. Raises BrokenIndexError, and OSError where it cannot be read."""
    return _pieces(_read(checkpoint, Records))


def copy_weights(checkpoint: Path, target: Path) -> int:
    """Write `checkpoint` without its optimiser state to the new folder `target`; bytes written.

    `common.pt`, which is small, is copied whole. Needs torch. Raises as `pieces`.
    """
    metadata = _read(checkpoint, _Torch)
    target.mkdir(parents=True)
    wanted: dict[str, list[Any]] = defaultdict(list)
    for index, place in metadata.storage_data.items():
        if not OPTIMISER.match(index.fqn):
            wanted[place.relative_path].append(place)
    for file, places in wanted.items():
        with (checkpoint / file).open("rb") as source, (target / file).open("xb") as sink:
            for place in sorted(places, key=lambda one: one.offset):
                source.seek(place.offset)
                place.offset = sink.tell()
                _copy(source, sink, place.length)
    _without_optimiser(metadata)
    (target / METADATA).write_bytes(pickle.dumps(metadata))
    for other in checkpoint.iterdir():
        if other.is_file() and other.name != METADATA and other.suffix != ".distcp":
            shutil.copyfile(other, target / other.name)
    return sum(path.stat().st_size for path in target.iterdir())


def _without_optimiser(metadata: Any) -> None:
    """Drop from the tables of `metadata` what belongs to the optimiser."""

    def kept(table: dict[str, Any] | None) -> dict[str, Any] | None:
        if not isinstance(table, dict):
            return table
        return {key: value for key, value in table.items() if not OPTIMISER.match(key)}

    for name in ("state_dict_metadata", "planner_data", "mcore_data"):
        if hasattr(metadata, name):
            setattr(metadata, name, kept(getattr(metadata, name)))
    metadata.storage_data = {
        index: place
        for index, place in metadata.storage_data.items()
        if not OPTIMISER.match(index.fqn)
    }
    # Megatron keeps the plans of the save here, to repeat it faster; they name what is gone.
    vars(metadata).pop("all_local_plans", None)


def _copy(source: BinaryIO, sink: BinaryIO, length: int) -> None:
    while length:
        block = source.read(min(length, _BLOCK))
        if not block:
            raise BrokenIndexError(f"{source.name} ends before the index says")
        sink.write(block)
        length -= len(block)


def _pieces(metadata: Any) -> list[Piece]:
    try:
        found = [
            Piece(index.fqn, place.relative_path, place.offset, place.length)
            for index, place in metadata.storage_data.items()
        ]
    except AttributeError as error:
        raise BrokenIndexError(f"{METADATA} is not the index of a checkpoint: {error}") from None
    for piece in found:
        if Path(piece.file).name != piece.file:
            raise BrokenIndexError(f"{METADATA} names a file elsewhere: {piece.file!r}")
    return found


def _read(checkpoint: Path, reader: type[Records]) -> Any:
    try:
        metadata = read_pickle((checkpoint / METADATA).read_bytes(), reader)
    except BrokenPickleError as error:
        raise BrokenIndexError(f"{METADATA} is {error}") from None
    _pieces(metadata)
    return metadata


class _Torch(Records):
    """torch's value classes as they are, the rest records."""

    def find_class(self, module: str, name: str) -> Any:
        import torch

        if module == _VALUES or (module, name) == _PLACE:
            found = getattr(importlib.import_module(module), name, None)
            if isinstance(found, type):
                return found
        elif module == "torch" and isinstance(found := getattr(torch, name, None), torch.dtype):
            return found
        elif (module, name) == ("torch", "Size"):
            return torch.Size
        elif (module, name) == ("torch.serialization", "_get_layout"):
            return torch.serialization._get_layout
        elif (module, name) in _PATHS:
            return PurePosixPath
        return super().find_class(module, name)
