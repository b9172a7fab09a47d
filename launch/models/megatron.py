"""The flags by which slime's Megatron-LM builds the recipe's model.

One design choice: every flag follows from the shape, and what the flags cannot say is an error.
slime hands Megatron's GPTModel a rotary base, a rotated share and a switch for Llama 3.1's scaling
with its four constants fixed; any other scaling goes by our model provider, because the engines
apply it whether or not the trainer does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from launch.models.facts import ModelFactsError
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.count import VOCAB_MULTIPLE
from slime_ext.weights.rope_config import Llama3Rope
from slime_ext.weights.shape import ModelShape, MoEShape

MEGATRON_ROPE = Llama3Rope(8.0, 1.0, 4.0, 8192)
"""What `--use-rope-scaling` builds; slime does not pass `--rope-scaling-factor` on."""
ROPE_PROVIDER = "slime_ext.host.model_provider.scaled_rope_model"
HYBRID_SPEC = ("slime_plugins.models.qwen3_5", "get_qwen3_5_spec")

Flag = tuple[str, str | None]


def model_flags(shape: ModelShape, recipe: Recipe) -> list[Flag]:
    """The model group of slime's command line: (flag, value), None for a switch. A flag with two
    values comes as (flag, first) and (second, None).

    Raises ModelFactsError where Megatron would build another model than the engines load.
    """
    if shape.hybrid and recipe.model.rope_scaling is not None:
        raise ModelFactsError(
            f"model.rope_scaling = {recipe.model.rope_scaling} does not reach the engines: SGLang "
            "changes the outer config.json only, and the rotation of this model is stated in its "
            "text_config; take model.rope_scaling out"
        )
    flags = _flags(shape)
    wrong = differences(shape, recipe.extra.megatron)
    if wrong:
        raise ModelFactsError("\n".join(wrong))
    return flags


def differences(shape: ModelShape, flags: Mapping[str, Any]) -> list[str]:
    """What pass-through flags (names without dashes) say about the model that its config does not,
    one line each with both values."""
    expected = {flag.removeprefix("--"): value for flag, value in _flags(shape)}
    wrong = []
    for name, given in flags.items():
        if name not in _MODEL_FLAGS:
            continue
        stated = expected.get(name, False)
        asked = given if isinstance(given, bool) else str(given)
        if not _same(asked, True if stated is None else stated):
            ours = "is not set for it" if stated is False else f"is {stated or 'set'} for it"
            wrong.append(
                f"extra.megatron.{name} = {given!r}, but the model's config.json says otherwise: "
                f"--{name} {ours}; take extra.megatron.{name} out"
            )
    return wrong


def _flags(shape: ModelShape) -> list[Flag]:
    flags: list[Flag] = [
        ("--num-layers", str(shape.num_layers)),
        ("--hidden-size", str(shape.hidden_size)),
        ("--ffn-hidden-size", str(shape.ffn_size)),
        ("--num-attention-heads", str(shape.num_heads)),
        ("--group-query-attention", None),
        ("--num-query-groups", str(shape.num_kv_heads)),
        ("--kv-channels", str(shape.head_dim)),
        ("--vocab-size", str(shape.vocab_size)),
        ("--make-vocab-size-divisible-by", str(VOCAB_MULTIPLE)),
        ("--normalization", "RMSNorm"),
        ("--norm-epsilon", f"{shape.rms_norm_eps:g}"),
        ("--swiglu", None),
        ("--disable-bias-linear", None),
        *_rope_flags(shape),
    ]
    if shape.qkv_bias:
        flags.append(("--add-qkv-bias", None))
    if shape.qk_norm:
        flags.append(("--qk-layernorm", None))
    if not shape.tied_embeddings:
        flags.append(("--untie-embeddings-and-output-weights", None))
    if shape.moe:
        flags += _expert_flags(shape.moe)
    if shape.hybrid:
        flags += _hybrid_flags(gated=shape.hybrid.output_gate)
    return flags


def _rope_flags(shape: ModelShape) -> list[Flag]:
    if shape.rope_theta != int(shape.rope_theta):
        raise ModelFactsError(
            f"rope_theta = {shape.rope_theta} in config.json; Megatron's --rotary-base takes whole "
            "numbers only, so this model cannot be trained here"
        )
    flags: list[Flag] = [
        ("--position-embedding-type", "rope"),
        ("--rotary-base", str(int(shape.rope_theta))),
        ("--rotary-percent", f"{shape.partial_rotary:g}"),
    ]
    if shape.rope_scaling is None:
        return flags
    if shape.rope_scaling == MEGATRON_ROPE:
        return [*flags, ("--use-rope-scaling", None)]
    if shape.hybrid:
        raise ModelFactsError(
            f"the model's text_config asks for {shape.rope_scaling}, Megatron builds this hybrid "
            'without scaling; write rope_type = "default" in the rope_parameters of its config.json'
        )
    return [*flags, ("--custom-model-provider-path", ROPE_PROVIDER)]


def _expert_flags(moe: MoEShape) -> list[Flag]:
    """Softmax over the chosen experts (the same as normalising their share of a softmax over all),
    or over all of them; routing in float32; no balancing loss, which would not be the policy's."""
    flags: list[Flag] = [
        ("--num-experts", str(moe.num_experts)),
        ("--moe-router-topk", str(moe.top_k)),
        ("--moe-ffn-hidden-size", str(moe.ffn_size)),
        ("--moe-router-score-function", "softmax"),
        ("--moe-router-dtype", "fp32"),
        ("--moe-aux-loss-coeff", "0"),
        ("--moe-token-dispatcher-type", "alltoall"),
        ("--moe-grouped-gemm", None),
        ("--moe-permute-fusion", None),
    ]
    return flags if moe.normalised else [*flags, ("--moe-router-pre-softmax", None)]


def _hybrid_flags(gated: bool) -> list[Flag]:
    """slime's plugin replaces the linear-attention layers; norms store their weight minus 1."""
    flags: list[Flag] = [
        ("--spec", HYBRID_SPEC[0]),
        (HYBRID_SPEC[1], None),
        ("--apply-layernorm-1p", None),
    ]
    return [*flags, ("--attention-output-gate", None)] if gated else flags


_MODEL_FLAGS = frozenset(
    {
        "num-layers",
        "hidden-size",
        "ffn-hidden-size",
        "num-attention-heads",
        "group-query-attention",
        "num-query-groups",
        "kv-channels",
        "vocab-size",
        "normalization",
        "norm-epsilon",
        "swiglu",
        "disable-bias-linear",
        "position-embedding-type",
        "rotary-base",
        "rotary-percent",
        "use-rope-scaling",
        "add-qkv-bias",
        "qk-layernorm",
        "untie-embeddings-and-output-weights",
        "num-experts",
        "moe-router-topk",
        "moe-ffn-hidden-size",
        "moe-router-score-function",
        "moe-router-pre-softmax",
        "apply-layernorm-1p",
        "attention-output-gate",
        "spec",
    }
)
"""Flags that say what the model is; `differences` judges these."""


def _same(asked: str | bool, stated: str | bool) -> bool:
    if isinstance(asked, bool) or isinstance(stated, bool):
        return asked is stated
    try:
        return float(asked) == float(stated)
    except ValueError:
        return asked == stated
