"""Whether a checkpoint is of the model that a config describes, by the arguments it carries.

One design choice: shapes alone cannot tell (8 heads of 128 and 16 of 64 give equal matrices), so
what Megatron wrote down about the model is compared too, where it did.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from slime_ext.weights.count import VOCAB_MULTIPLE
from slime_ext.weights.pickles import Record
from slime_ext.weights.shape import ModelShape


def differences(args: Record | None, shape: ModelShape) -> Iterator[str]:
    """`NAME is A in the checkpoint, B by the config` for each argument that says another model."""
    if args is None:
        return
    for name, expected in _expected(args, shape).items():
        found = getattr(args, name, None)
        if isinstance(found, int | float) and found != expected:
            yield f"{name} is {found} in the checkpoint, {expected} by the config"


def vocabulary_fault(name: str, stored: int, args: Record | None, shape: ModelShape) -> str | None:
    """What is wrong with an embedding or head of `stored` rows, None where the vocabulary fits.

    Megatron pads it to a multiple of `make_vocab_size_divisible_by` x tensor parallel size; more
    rows than that are not padding.
    """
    words = _number(args, "vocab_size", 0)
    if words > shape.vocab_size:
        return (
            f"vocab_size is {words} in the checkpoint, {shape.vocab_size} by the config, which "
            f"would cut {name}"
        )
    if stored < shape.vocab_size:
        return f"{name} has {stored} rows, the config's vocab_size is {shape.vocab_size}"
    multiple = _number(args, "make_vocab_size_divisible_by", VOCAB_MULTIPLE)
    multiple *= _number(args, "tensor_model_parallel_size", 8)
    if stored - shape.vocab_size >= multiple and stored != _number(args, "padded_vocab_size", 0):
        return (
            f"{name} has {stored} rows, {stored - shape.vocab_size} more than the config's "
            f"vocab_size, which is more than padding to a multiple of {multiple}"
        )
    return None


def _expected(args: Record, shape: ModelShape) -> dict[str, Any]:
    expected = {
        "num_layers": shape.num_layers,
        "hidden_size": shape.hidden_size,
        "num_attention_heads": shape.num_heads,
        "kv_channels": shape.head_dim,
        "rotary_base": shape.rope_theta,
        "norm_epsilon": shape.rms_norm_eps,
        "untie_embeddings_and_output_weights": not shape.tied_embeddings,
        "num_experts": shape.moe.num_experts if shape.moe else 0,
    }
    # Megatron leaves the number of groups at 1 where attention is not grouped.
    if getattr(args, "group_query_attention", True):
        expected["num_query_groups"] = shape.num_kv_heads
    if shape.moe:
        return expected | {"moe_ffn_hidden_size": shape.moe.ffn_size}
    return expected | {"ffn_hidden_size": shape.ffn_size}


def _number(args: Record | None, name: str, otherwise: int) -> int:
    found = getattr(args, name, None)
    return found if isinstance(found, int) else otherwise
