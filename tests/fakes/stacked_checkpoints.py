"""Checkpoints of any size in the layout of a tensor parallel Megatron with Transformer Engine.

One design choice: each piece is made, written and dropped, because the largest of these checkpoints
are as large as the machine's memory; the index is assembled by hand from torch's own records.
"""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from slime_ext.weights.count import padded_vocab_size
from slime_ext.weights.names import NamedRow, rows
from slime_ext.weights.shape import ModelShape
from slime_ext.weights.table import sizes
from tests.fakes.megatron_checkpoints import megatron_args

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""Offsets and sizes of a piece within a row's tensor."""


def write_stacked(folder: Path, shape: ModelShape, tp: int) -> Path:
    """Write a checkpoint with random finite bfloat16 weights; the padding of the vocabulary too."""
    import torch
    from torch.distributed.checkpoint.metadata import (
        ChunkStorageMetadata,
        Metadata,
        MetadataIndex,
        StorageMeta,
        TensorProperties,
        TensorStorageMetadata,
    )

    torch.manual_seed(0)
    folder.mkdir(parents=True)
    entries: dict[str, Any] = {}
    places: dict[Any, Any] = {}
    files = [(folder / f"__{rank}_0.distcp").open("wb") for rank in range(tp)]
    for named in rows(shape):
        place = next(named.stored(shape))
        size = _size(named, shape, tp)
        properties = TensorProperties(dtype=torch.bfloat16)
        whole = torch.Size((*place.lengths, *size))
        entry = entries.setdefault(place.key, TensorStorageMetadata(properties, whole, []))
        for number, (offsets, box) in enumerate(_boxes(named, size, tp)):
            offsets = (*place.lead, *offsets)
            box = (*(1 for _ in place.lead), *box)
            entry.chunks.append(ChunkStorageMetadata(torch.Size(offsets), torch.Size(box)))
            index = MetadataIndex(place.key, offsets)
            places[index] = _write(files[number % tp], box)
    for file in files:
        file.close()
    metadata = Metadata(entries, {}, places, StorageMeta())
    (folder / ".metadata").write_bytes(pickle.dumps(metadata))
    (folder / "metadata.json").write_text(json.dumps({"sharded_backend": "torch_dist"}))
    args = megatron_args(shape, padded_vocab_size(shape, tp), tp)
    torch.save({"args": args, "iteration": 1}, folder / "common.pt")
    return folder


def _size(named: NamedRow, shape: ModelShape, tp: int) -> tuple[int, ...]:
    """The whole Megatron tensor of a row."""
    length = sizes(shape)
    first = named.row.parts[0].axes
    if first[0] == "vocab":
        return (padded_vocab_size(shape, tp), shape.hidden_size)
    height = sum(length[part.axes[0]] for part in named.row.parts)
    return (height, *(length[axis] for axis in first[1:]))


def _boxes(named: NamedRow, size: tuple[int, ...], tp: int) -> Iterator[Box]:
    """The pieces of each rank in turn."""
    name = named.megatron
    if "norm" in name or "router" in name:
        yield (0,) * len(size), size
    elif "linear_proj" in name or "linear_fc2" in name:
        width = size[1] // tp
        for rank in range(tp):
            yield (0, rank * width), (size[0], width)
    else:
        count = 2 * tp if named.row.layout == "gate_up" else tp
        height = size[0] // count
        for part in range(count):
            yield (part * height, *(0 for _ in size[1:])), (height, *size[1:])


def _write(file: IO[bytes], box: tuple[int, ...]) -> Any:
    """A piece of random bits, the highest of the exponent cleared, so that all are finite."""
    import torch
    from torch.distributed.checkpoint.filesystem import _StorageInfo

    start = file.tell()
    bits = torch.empty(math.prod(box), dtype=torch.int16).random_(-(2**15), 2**15)
    torch.save(bits.bitwise_and_(~0x4000).view(torch.bfloat16).view(box), file)
    return _StorageInfo(Path(file.name).name, start, file.tell() - start)
