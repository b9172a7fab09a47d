"""Whether the tensors of a folder are those its config and its base model ask for.

One design choice: names and shapes are held against two sources, the table of the family and the
base model's own headers, because a mistake in the table would be made by exporter and check alike.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from slime_ext.weights.count import count_parameters
from slime_ext.weights.shape import ModelShape

from .faults import Fault
from .folder import Weights
from .headers import TORCH_NAME, Stored

HEAD = "lm_head.weight"
VOCABULARY = re.compile(r"(^|\.)(embed_tokens|lm_head)\.weight$")
_EXPERT = re.compile(r"(.*\.experts)\.(\d+)\.")
_NOT_TEXT = re.compile(r"(^|\.)(visual|vision_tower|mtp)\.")
"""Towers and prediction heads beside the decoder, which its config does not count."""


def embedding_name(tensors: Mapping[str, Stored]) -> str | None:
    """The name of the input embedding; it lies deeper where a model has a tower beside the text."""
    return next((name for name in tensors if name.endswith("embed_tokens.weight")), None)


def beside_the_decoder(name: str) -> bool:
    """Whether a tensor belongs to a vision tower or a prediction head."""
    return _NOT_TEXT.search(name) is not None


def compare_names(
    weights: Weights,
    shape: ModelShape,
    expected: Mapping[str, tuple[int, ...]],
    source: str,
    allow_extra: bool = False,
) -> Iterator[Fault]:
    """Missing, unexpected and wrongly shaped tensors against `expected`, which `source` states.

    A tied head may be there or not, whatever the source has. Tensors that a fault of the files
    names already are not said to be missing again.
    """
    known = {fault.name for fault in weights.faults}
    tied = {HEAD} if shape.tied_embeddings else set()
    for name, size in expected.items():
        held = weights.tensors.get(name)
        if held is None:
            if name not in known | tied:
                yield Fault(name, f"missing; {source} has it")
        elif held.shape != size:
            yield Fault(name, _wrong_shape(name, held, size, source))
    if not allow_extra:
        for name in weights.tensors:
            if name not in expected and name not in tied:
                yield Fault(name, f"unexpected; {source} has no such tensor")


def tied_head_shape(weights: Weights, shape: ModelShape) -> Iterator[Fault]:
    """A head beside a tied embedding must at least have its size."""
    head, name = weights.tensors.get(HEAD), embedding_name(weights.tensors)
    if shape.tied_embeddings and head is not None and name is not None:
        embedding = weights.tensors[name]
        if (head.shape, head.dtype) != (embedding.shape, embedding.dtype):
            problem = f"is {_said(head)} although it is tied to {name}, {_said(embedding)}"
            yield Fault(HEAD, problem)


def count_experts(weights: Weights, shape: ModelShape) -> Iterator[Fault]:
    """Layers with more or fewer experts than the config states."""
    if shape.moe is None:
        return
    found: dict[str, set[int]] = defaultdict(set)
    for name, stored in weights.tensors.items():
        if match := _EXPERT.match(name):
            found[match[1]].add(int(match[2]))
        elif ".experts." in name and len(stored.shape) == 3:
            found[name.rpartition(".")[0]].update(range(stored.shape[0]))
    wanted = shape.moe.num_experts
    for layer in range(shape.num_layers):
        name = f"model.layers.{layer}.mlp.experts"
        here = found.get(name, set())
        if here != set(range(wanted)):
            absent = sorted(set(range(wanted)) - here)
            said = f"{len(here)} experts, the config states {wanted}"
            yield Fault(name, f"{said}; absent: {_numbers(absent)}" if absent else said)


def count_total(weights: Weights, shape: ModelShape) -> Iterator[Fault]:
    """The sum of all numbers against the count that follows from the config."""
    counted = count_parameters(shape).total
    held = text_parameters(weights.tensors, shape)
    if held != counted:
        yield Fault("all tensors", f"{held:,} parameters, the config makes {counted:,}")


def text_parameters(tensors: Mapping[str, Stored], shape: ModelShape) -> int:
    """Parameters of the decoder, a tied head counted once."""
    return sum(
        one.numel
        for name, one in tensors.items()
        if not beside_the_decoder(name) and not (shape.tied_embeddings and name == HEAD)
    )


def compare_dtypes(
    weights: Weights, asked: str, reference: Mapping[str, Stored] | None
) -> Iterator[Fault]:
    """Tensors of another dtype than `asked` (in torch's words), unless the base model has that very
    tensor in that dtype."""
    for name, stored in weights.tensors.items():
        base = reference.get(name) if reference else None
        kept = base is not None and base.dtype == stored.dtype
        if stored.dtype not in TORCH_NAME:
            if not kept:
                yield Fault(name, f"is {stored.dtype}, which weights do not come in")
        elif stored.dtype_name != asked and not (kept and _mixed(reference)):
            yield Fault(name, f"is {stored.dtype_name}, {asked} was expected")


def _mixed(reference: Mapping[str, Stored] | None) -> bool:
    """The base model itself keeps some tensors in another dtype."""
    return len({one.dtype for one in (reference or {}).values()}) > 1


def _wrong_shape(name: str, held: Stored, size: tuple[int, ...], source: str) -> str:
    wrong = f"is {list(held.shape)}, {source} says {list(size)}"
    padded = VOCABULARY.search(name) and held.shape[1:] == size[1:] and held.shape[0] > size[0]
    return wrong + "; the padding of Megatron's vocabulary was left in" if padded else wrong


def _said(stored: Stored) -> str:
    return f"{list(stored.shape)} of {stored.dtype_name}"


def _numbers(absent: list[int]) -> str:
    shown = ", ".join(str(number) for number in absent[:10])
    return shown if len(absent) <= 10 else f"{shown} and {len(absent) - 10} more"
