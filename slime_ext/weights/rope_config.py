"""What a Hugging Face config says about rotary embeddings: base, scaling, rotated share.

One design choice: both spellings are read in one place. transformers 4 writes `rope_theta` beside
`rope_scaling`, 5 writes `rope_parameters`; a reader of only one of them falls back to a base of
10,000 in silence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Llama3Rope:
    """Llama 3.1's frequency scaling (`rope_type = "llama3"`)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int


@dataclass(frozen=True, slots=True)
class YarnRope:
    """YaRN (`rope_type = "yarn"`): frequencies blended between two rotation counts, and queries
    and keys scaled."""

    factor: float
    original_max_position_embeddings: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attn_factor: float = 1.0
    """SGLang's and vLLM's key; transformers ignores it."""

    @property
    def attention_scale(self) -> float:
        """Factor on every query and key, (0.1 ln s + 1) attn_factor (Peng et al. 2023, section 3.4,
        where sqrt(1/t) = 0.1 ln s + 1)."""
        return (0.1 * math.log(self.factor) + 1.0) * self.attn_factor


_YARN_KEYS = {
    "rope_type",
    "type",
    "rope_theta",
    "partial_rotary_factor",
    "factor",
    "original_max_position_embeddings",
    "beta_fast",
    "beta_slow",
    "attn_factor",
    "attention_factor",
}
RopeScaling = Llama3Rope | YarnRope | None


@dataclass(frozen=True, slots=True)
class Rope:
    """Base, share of a head's dimensions that rotate, and scaling."""

    theta: float
    partial: float
    scaling: RopeScaling


def rope_from_config(config: Mapping[str, Any], where: str) -> Rope:
    """The rotary settings of a (text) config; `where` names it in errors.

    Raises ValueError where no base is given or the kind of scaling is unknown.
    """
    parameters = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    theta = parameters.get("rope_theta", config.get("rope_theta"))
    if theta is None:
        raise ValueError(
            f"{where}: neither rope_theta nor rope_parameters.rope_theta is given; add the base "
            "that the publisher's config.json states"
        )
    partial = parameters.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0))
    return Rope(float(theta), float(partial), scaling_from_config(parameters, where))


def scaling_from_config(parameters: Mapping[str, Any], where: str) -> RopeScaling:
    """The scaling of a `rope_scaling` or `rope_parameters` table; None for plain rotation.

    Raises ValueError for an unknown kind or a missing number.
    """
    kind = parameters.get("rope_type", parameters.get("type", "default"))
    try:
        if kind == "default":
            return None
        if kind == "llama3":
            return Llama3Rope(
                factor=float(parameters["factor"]),
                low_freq_factor=float(parameters["low_freq_factor"]),
                high_freq_factor=float(parameters["high_freq_factor"]),
                original_max_position_embeddings=int(
                    parameters["original_max_position_embeddings"]
                ),
            )
        if kind == "yarn":
            return _yarn(parameters, where)
    except KeyError as error:
        raise ValueError(f"{where}: rope scaling {kind!r} lacks {error}; add it") from None
    raise ValueError(
        f"{where}: rope_type = {kind!r} is not supported; known: default, llama3, yarn"
    )


def _yarn(parameters: Mapping[str, Any], where: str) -> YarnRope:
    """What SGLang computes from these keys; those it would ignore are refused."""
    scaling = YarnRope(
        factor=float(parameters["factor"]),
        original_max_position_embeddings=int(parameters["original_max_position_embeddings"]),
        beta_fast=float(parameters.get("beta_fast") or 32.0),
        beta_slow=float(parameters.get("beta_slow") or 1.0),
        attn_factor=float(parameters.get("attn_factor") or 1.0),
    )
    unknown = sorted(set(parameters) - _YARN_KEYS)
    if unknown:
        raise ValueError(f"{where}: rope scaling 'yarn' with {', '.join(unknown)} is not supported")
    asked = parameters.get("attention_factor")
    if asked is not None and not math.isclose(asked, scaling.attention_scale, rel_tol=1e-6):
        raise ValueError(
            f"{where}: attention_factor = {asked} is read by transformers only; SGLang scales by "
            f"{scaling.attention_scale:g}; write attn_factor = "
            f"{asked * scaling.attn_factor / scaling.attention_scale:.10g} in its place"
        )
    return scaling
