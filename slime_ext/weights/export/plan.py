"""What an export will write: each Hugging Face tensor and the stored rows it is made of.

One design choice: the whole plan is made and checked from the index before a tensor is read, so a
wrong reference, a foreign name or a missing tensor is known in a second, all at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slime_ext.errors import ExplainedError, nearest
from slime_ext.weights.export.belongs import differences, vocabulary_fault
from slime_ext.weights.names import NamedRow, Place, expected_tensors, rows
from slime_ext.weights.shape import ModelShape, shape_from_config
from slime_ext.weights.stored import StoredCheckpoint, StoredTensor, listed, read_stored
from slime_ext.weights.table import row_ranges, sizes

ITEM_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
"""The dtypes of weights, by torch's names."""


class PlanError(ExplainedError, ValueError):
    """A checkpoint that cannot become the model of the config; names what does not fit."""


class ExtraTensorsError(ExplainedError, ValueError):
    """A checkpoint holds tensors that the family's table does not know."""


@dataclass(frozen=True, slots=True)
class Source:
    """Rows of a stored tensor: those of `ranges` [start, end), in order, below the indices `lead`
    into its first axes."""

    tensor: StoredTensor
    lead: tuple[int, ...]
    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """One tensor of the exported model."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    source: Source

    @property
    def nbytes(self) -> int:
        """Bytes in the exported file."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """All tensors of the exported model by name, in the model's order."""

    checkpoint: StoredCheckpoint
    shape: ModelShape
    tensors: dict[str, PlannedTensor]
    extra: tuple[str, ...]
    """Stored tensors that the family's table does not know; they are not exported."""

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.nbytes for tensor in self.tensors.values())

    @property
    def parameters(self) -> int:
        """Numbers in all tensors."""
        return sum(math.prod(tensor.shape) for tensor in self.tensors.values())


def plan_export(
    checkpoint: Path, config: Mapping[str, Any], dtype: str | Mapping[str, str] = "bfloat16"
) -> ExportPlan:
    """Plan the export of a torch_dist checkpoint as the model of a Hugging Face `config`; `dtype`
    is one of `ITEM_BYTES`, or one for each tensor's name.

    Raises StoredError for a checkpoint that is not whole, PlanError naming everything that does
    not fit or a config that cannot be read, UnknownFamilyError for a family without a table.
    """
    for name in {dtype} if isinstance(dtype, str) else set(dtype.values()):
        if name not in ITEM_BYTES:
            raise PlanError(f"dtype {name!r} is not supported; {nearest(name, ITEM_BYTES)}")
    try:
        shape = shape_from_config(config, "config.json of the reference")
    except ValueError as error:
        raise PlanError(str(error)) from error
    stored = read_stored(checkpoint)
    finder = _Finder(stored, shape)
    expected = expected_tensors(shape)
    tensors: dict[str, PlannedTensor] = {}
    for named in rows(shape):
        for name, source in zip(named.hf, finder.sources(named), strict=False):
            kind = dtype if isinstance(dtype, str) else dtype[name]
            tensors[name] = PlannedTensor(name, expected[name], kind, source)
    faults = [*differences(stored.args, shape), *finder.faults()]
    if faults:
        raise PlanError(
            f"{checkpoint} is not a checkpoint of the model that the reference describes: "
            + "; ".join(faults)
            + ". Name the folder of the model that was trained with --reference"
        )
    extra = sorted(stored.tensors.keys() - {one.source.tensor.name for one in tensors.values()})
    return ExportPlan(stored, shape, tensors, tuple(extra))


def refuse_extra(plan: ExportPlan) -> None:
    """Raise ExtraTensorsError naming every stored tensor that would be left out."""
    if plan.extra:
        names = "\n  ".join(plan.extra)
        raise ExtraTensorsError(
            f"{plan.checkpoint.folder} holds {len(plan.extra)} tensors that are not in the table "
            f"of {plan.shape.architecture}:\n  {names}\nType --allow-extra to leave them out"
        )


class _Finder:
    """Finds rows of the table in a checkpoint and collects what does not fit."""

    def __init__(self, stored: StoredCheckpoint, shape: ModelShape) -> None:
        self.stored, self.shape = stored, shape
        self._missing: list[str] = []
        self._wrong: dict[str, None] = {}

    def faults(self) -> Iterator[str]:
        """One line for each kind of fault."""
        if self._missing:
            yield f"missing: {listed(self._missing)}"
        if self._wrong:
            yield listed(list(self._wrong))

    def sources(self, named: NamedRow) -> list[Source]:
        """Where the parts of a row lie; empty where that is noted as a fault."""
        parts = [row_ranges(named.row, part, self.shape) for part in range(len(named.row.parts))]
        for place in named.stored(self.shape):
            if place.key in self.stored.tensors:
                whole = max(ranges[-1][1] for ranges in parts)
                return self._taken(named, place, [place.key] * len(parts), parts, whole)
            # With Megatron's `singleton_local_shards` gate and up projection have their own keys.
            halves = [f"{place.key}_w", f"{place.key}_v"]
            if named.row.layout == "gate_up" and halves[0] in self.stored.tensors:
                half = parts[0][0][1]
                return self._taken(named, place, halves, [[(0, half)]] * 2, half)
        self._missing.append(named.megatron)
        return []

    def _taken(
        self,
        named: NamedRow,
        place: Place,
        keys: list[str],
        parts: list[list[tuple[int, int]]],
        length: int,
    ) -> list[Source]:
        """The parts out of the tensors `keys`, which must be `length` rows long."""
        axes = [sizes(self.shape)[axis] for axis in named.row.parts[0].axes]
        found = []
        for key, ranges in zip(keys, parts, strict=True):
            tensor = self.stored.tensors.get(key)
            if tensor is None:
                self._missing.append(key)
                return []
            fault = self._fault(named, tensor, (*place.lengths, length, *axes[1:]))
            if fault is not None:
                self._wrong.setdefault(fault)
                return []
            found.append(Source(tensor, place.lead, tuple(ranges)))
        return found

    def _fault(self, named: NamedRow, tensor: StoredTensor, wanted: tuple[int, ...]) -> str | None:
        if tensor.dtype not in ITEM_BYTES:
            return f"{tensor.name} has dtype {tensor.dtype}, which is no dtype of weights"
        if named.row.parts[0].axes[0] == "vocab" and tensor.shape[1:] == wanted[1:]:
            return vocabulary_fault(tensor.name, tensor.shape[0], self.stored.args, self.shape)
        if tensor.shape != wanted:
            return f"{tensor.name} is {tensor.shape}, the config makes it {wanted}"
        return None
