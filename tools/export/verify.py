"""Whether a Hugging Face folder is a whole model: the check behind `longrl export --verify`.

One design choice: headers and small files only, unless told otherwise, so the check of a 60 GB
folder takes a moment and can follow every export; what was not looked at is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slime_ext.errors import ExplainedError
from slime_ext.weights.rope_config import RopeScaling, scaling_from_config
from slime_ext.weights.shape import ModelShape, shape_from_config

from .configs import CONFIG, compare_shapes, read_config, rope_for_every_reader, stated_dtype
from .contents import (
    HEAD,
    compare_dtypes,
    compare_names,
    count_experts,
    count_total,
    text_parameters,
    tied_head_shape,
)
from .faults import Fault, fault_lines
from .folder import Weights, read_weights
from .side_files import check_side_files
from .values import check_values

MOST_BLOCKS = 1_000_000
"""Feed-forwards and experts of a model that may be real; the largest published have some 25,000."""


class NoBaseModelError(ExplainedError, ValueError):
    """The base model's folder cannot be compared with."""


@dataclass(frozen=True, slots=True)
class Against:
    """What a folder is held against, beside itself."""

    reference: Path | None = None
    """The base model's folder."""
    dtype: str | None = None
    """In torch's words; None takes what config.json says."""
    rope_scaling: dict[str, Any] | None = None
    """What the recipe put in place of the base model's own."""
    allow_extra: bool = False
    """Tensors that neither config nor base model has are no fault."""


@dataclass
class Verified:
    """What the check found."""

    folder: Path
    faults: list[Fault] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    tensors: int = 0
    parameters: int = 0
    dtypes: tuple[str, ...] = ()
    files: int = 0

    @property
    def ok(self) -> bool:
        """Nothing is wrong with what was looked at."""
        return not self.faults

    def lines(self) -> list[str]:
        """The faults, what the folder holds, and what was not looked at."""
        held = (
            f"{_count(self.tensors, 'tensor')}, {self.parameters:,} parameters, "
            f"{' and '.join(self.dtypes) or 'no dtype'}, {_count(self.files, 'file')}"
        )
        verdict = "no fault found" if self.ok else _count(len(self.faults), "fault")
        lines = [f"{self.folder}: {held}: {verdict}"]
        lines += [f"  {line}" for line in fault_lines(self.faults)]
        return lines + [f"  not checked: {line}" for line in self.not_checked]


def verify_folder(folder: Path, against: Against = Against(), values: bool = False) -> Verified:
    """Check `folder`; with `values` every tensor is read too.

    Raises FileNotFoundError where there is no such folder, NoBaseModelError for a base model that
    is none. Needs neither torch nor transformers.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder; name one that holds a model")
    weights = read_weights(folder)
    base = None if against.reference is None else _base(against.reference)
    found = Verified(folder, weights.faults, tensors=len(weights.tensors), files=len(weights.files))
    found.dtypes = tuple(sorted({one.dtype_name for one in weights.tensors.values()}))
    found.parameters = sum(one.numel for one in weights.tensors.values())
    shape: ModelShape | None = None
    try:
        config = read_config(folder)
        shape = _sane(shape_from_config(config))
        found.faults += _config(config, shape, base, against)
    except (ValueError, FileNotFoundError) as error:
        found.faults.append(Fault(CONFIG, str(error)))
    except (TypeError, AttributeError, ArithmeticError) as error:
        found.faults.append(Fault(CONFIG, f"holds a value of the wrong kind ({error})"))
    if shape is not None:
        found.parameters = text_parameters(weights.tensors, shape)
        found.faults += _names(weights, shape, base, against, found)
        found.faults += _dtypes(weights, config, base, against, found)
    if base is None:
        found.not_checked.append("against the base model; name it with --reference")
    found.faults += check_side_files(folder, base.folder if base else None)
    if values:
        found.faults += check_values(weights, shape, base.weights if base else None)
    else:
        found.not_checked.append("the numbers themselves; add --values")
        if shape is not None and shape.tied_embeddings and HEAD in weights.tensors:
            found.not_checked.append(f"that {HEAD} equals the embedding; add --values")
    return found


def _sane(shape: ModelShape) -> ModelShape:
    """The shape, unless its tensors could not even be listed. Raises ValueError."""
    experts = shape.moe.num_experts if shape.moe else 1
    if shape.num_layers * max(experts, 1) > MOST_BLOCKS:
        raise ValueError(f"states {shape.num_layers:,} layers of {experts:,} feed-forwards")
    return shape


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


@dataclass(frozen=True, slots=True)
class _Base:
    """The base model: its folder may hold no weights, only its config."""

    folder: Path
    weights: Weights
    shape: ModelShape


def _base(folder: Path) -> _Base:
    try:
        shape = shape_from_config(read_config(folder))
    except (ValueError, FileNotFoundError) as error:
        raise NoBaseModelError(
            f"--reference {folder}: {CONFIG} {error}; name the folder of the base model"
        ) from error
    weights = read_weights(folder)
    if weights.tensors and weights.faults:
        raise NoBaseModelError(
            f"--reference {folder} is not whole itself: {fault_lines(weights.faults)[0]}; "
            "fetch the base model again"
        )
    return _Base(folder, weights, shape)


def _config(
    config: dict[str, Any], shape: ModelShape, base: _Base | None, against: Against
) -> Iterator[Fault]:
    yield from rope_for_every_reader(config, shape)
    if base is not None:
        scaling: RopeScaling | None = None
        if against.rope_scaling is not None:
            scaling = scaling_from_config(against.rope_scaling, "model.rope_scaling")
        yield from compare_shapes(shape, base.shape, scaling)


def _names(
    weights: Weights, shape: ModelShape, base: _Base | None, against: Against, found: Verified
) -> Iterator[Fault]:
    """Names, shapes and counts, from the family's table and from the base model's headers."""
    from slime_ext.weights.names import expected_tensors
    from slime_ext.weights.table import UnknownFamilyError

    seen: set[str] = set()
    try:
        expected = expected_tensors(shape)
    except UnknownFamilyError:
        found.not_checked.append(f"names against the config: {shape.architecture} has no table")
    else:
        for fault in compare_names(weights, shape, expected, "the config", against.allow_extra):
            seen.add(fault.name)
            yield fault
    if base is not None and base.weights.tensors:
        expected = {name: one.shape for name, one in base.weights.tensors.items()}
        said = compare_names(weights, shape, expected, "the base model", against.allow_extra)
        yield from (fault for fault in said if fault.name not in seen)
    elif base is not None:
        found.not_checked.append("names against the base model, whose folder holds no weights")
    yield from tied_head_shape(weights, shape)
    yield from count_experts(weights, shape)
    yield from count_total(weights, shape)


def _dtypes(
    weights: Weights,
    config: dict[str, Any],
    base: _Base | None,
    against: Against,
    found: Verified,
) -> Iterator[Fault]:
    stated = stated_dtype(config)
    if against.dtype is not None and stated != against.dtype:
        yield Fault(CONFIG, f"says dtype = {stated}, {against.dtype} was asked for")
    asked = against.dtype or stated
    if asked is None:
        found.not_checked.append(f"dtypes: {CONFIG} states none; name one with --dtype")
    else:
        yield from compare_dtypes(weights, asked, base.weights.tensors if base else None)
