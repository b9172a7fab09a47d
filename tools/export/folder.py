"""The weights of a Hugging Face folder as its headers and its index state them.

One design choice: index and headers are read apart and compared, and neither is trusted; readers
that follow an index miss what it leaves out, readers of all files find what it hides.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .faults import Fault
from .headers import BrokenFileError, Stored, read_header

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


@dataclass
class Weights:
    """The tensors found, by name, and what does not fit together."""

    folder: Path
    tensors: dict[str, Stored] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    """Safetensors files of the model, sorted."""
    faults: list[Fault] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        """Of all tensors."""
        return sum(one.length for one in self.tensors.values())


def read_weights(folder: Path) -> Weights:
    """Read every header of `folder`, and its index where it has one. Nothing is raised for a fault
    of the folder's; OSError where a file cannot be read."""
    weights = Weights(folder)
    index = _read_index(folder, weights) if (folder / INDEX).is_file() else None
    there = {path.name for path in folder.glob("*.safetensors")}
    if index is None and not there:
        weights.faults.append(Fault(SINGLE, f"neither it nor {INDEX} is there"))
    for name in sorted(there):
        _read_file(weights, name)
    if index is None:
        stray = sorted(there - {SINGLE})
        weights.faults += [Fault(name, f"no {INDEX} names it") for name in stray]
    else:
        _compare(weights, index, there)
        if SINGLE in there and len(there) > 1:
            problem = f"transformers reads it alone and leaves out the other files of {INDEX}"
            weights.faults.append(Fault(SINGLE, problem))
    return weights


def _read_index(folder: Path, weights: Weights) -> dict[str, Any] | None:
    """The index, None where it cannot be used."""
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        named = index["weight_map"]
        if all(isinstance(file, str) and Path(file).name == file for file in named.values()):
            return dict(index)
        weights.faults.append(Fault(INDEX, "it names files outside the folder"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        weights.faults.append(Fault(INDEX, f"it is damaged ({error!r})"))
    return None


def _read_file(weights: Weights, name: str) -> None:
    try:
        found = read_header(weights.folder / name)
    except BrokenFileError as error:
        weights.faults.append(Fault(name, str(error)))
        return
    weights.files.append(name)
    for tensor, stored in found.items():
        if tensor in weights.tensors:
            other = weights.tensors[tensor].file
            weights.faults.append(Fault(tensor, f"stands in both {other} and {name}"))
        else:
            weights.tensors[tensor] = stored


def _compare(weights: Weights, index: dict[str, Any], there: set[str]) -> None:
    named: dict[str, list[str]] = defaultdict(list)
    for tensor, file in index["weight_map"].items():
        named[file].append(tensor)
    for file, tensors in sorted(named.items()):
        if file not in there:
            problem = f"the index puts it into {file}, which is not there"
            weights.faults += [Fault(name, problem) for name in tensors]
            continue
        for name in tensors if file in weights.files else ():
            held = weights.tensors.get(name)
            if held is None or held.file != file:
                where = f"it is in {held.file}" if held else "no file holds it"
                weights.faults.append(Fault(name, f"the index puts it into {file}, but {where}"))
    for name, stored in weights.tensors.items():
        if name not in index["weight_map"]:
            weights.faults.append(Fault(name, f"{stored.file} holds it, the index leaves it out"))
    weights.faults += [
        Fault(file, "the index does not name it") for file in sorted(there - set(named))
    ]
    metadata = index.get("metadata")
    stated = metadata.get("total_size") if isinstance(metadata, dict) else None
    if stated is not None and not weights.faults and stated != weights.bytes:
        problem = f"total_size is {stated}, the files hold {weights.bytes} bytes of tensors"
        weights.faults.append(Fault(INDEX, problem))
