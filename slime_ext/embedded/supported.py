"""The architectures that the embedded trainer and engine can run.

One design choice: both ask here when they are built, so a model that one of them would compute
wrongly is refused by both, in the same words.
"""

from __future__ import annotations

from slime_ext.errors import ExplainedError
from slime_ext.weights.rope_config import Llama3Rope
from slime_ext.weights.shape import ModelShape


class UnsupportedModelError(ExplainedError, ValueError):
    """A model that the embedded backend has no code for."""


def require_supported(shape: ModelShape) -> None:
    """Raise UnsupportedModelError for a shape that the embedded backend has no code for."""
    problem = None
    if shape.architecture not in ("qwen3", "llama"):
        problem = f"a model of kind {shape.architecture!r}"
    elif shape.partial_rotary != 1.0:
        problem = f"partial_rotary_factor = {shape.partial_rotary:g}"
    elif not isinstance(shape.rope_scaling, Llama3Rope | None):
        problem = f"rope scaling {type(shape.rope_scaling).__name__}"
    if problem:
        raise UnsupportedModelError(
            f"the embedded backend does not support {problem}; it runs dense qwen3 and llama "
            'models with plain or llama3 rotation; set backend = "slime" for others'
        )
