"""Which tensor goes into which file, and the header of each.

One design choice: headers follow from the plan alone and are fixed before anything is written, so a
finished file is known by its first bytes and its length.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

from slime_ext.weights.export.plan import ITEM_BYTES, ExportPlan, PlannedTensor

INDEX = "model.safetensors.index.json"
_DTYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Shard:
    """One safetensors file."""

    name: str
    header: bytes
    """All bytes before those of the first tensor."""
    tensors: tuple[PlannedTensor, ...]
    """In the order of the file."""

    @property
    def nbytes(self) -> int:
        """Length of the file."""
        return len(self.header) + sum(tensor.nbytes for tensor in self.tensors)


def plan_shards(plan: ExportPlan, shard_bytes: int) -> list[Shard]:
    """Cut the model into files of at most `shard_bytes` (one tensor at least), in its order."""
    groups: list[list[PlannedTensor]] = [[]]
    filled = 0
    for tensor in plan.tensors.values():
        if groups[-1] and filled + tensor.nbytes > shard_bytes:
            groups.append([])
            filled = 0
        groups[-1].append(tensor)
        filled += tensor.nbytes
    if len(groups) == 1:
        return [_shard("model.safetensors", groups[0])]
    return [
        _shard(f"model-{number:05d}-of-{len(groups):05d}.safetensors", group)
        for number, group in enumerate(groups, 1)
    ]


def index_text(plan: ExportPlan, shards: list[Shard]) -> str:
    """`model.safetensors.index.json`: the bytes of all tensors, and each one's file."""
    weight_map = {tensor.name: shard.name for shard in shards for tensor in shard.tensors}
    index = {"metadata": {"total_size": plan.nbytes}, "weight_map": weight_map}
    return json.dumps(index, indent=2) + "\n"


def _shard(name: str, tensors: list[PlannedTensor]) -> Shard:
    # Wide numbers first, so that each tensor starts at a multiple of its own width.
    ordered = sorted(tensors, key=lambda tensor: -ITEM_BYTES[tensor.dtype])
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for tensor in ordered:
        header[tensor.name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + tensor.nbytes],
        }
        offset += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return Shard(name, struct.pack("<Q", len(text)) + text, tuple(ordered))
