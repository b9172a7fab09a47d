"""Placeholder for torchvision, which SGLang's and transformers' image code imports.

The real package does not load beside a CPU build of torch 2.13: its operators want CUDA libraries.
"""

from __future__ import annotations

import enum
import importlib
import sys
from typing import Any

from longrl_stubs import answer_submodules, placeholder

__version__ = "0.0.0"
answer_submodules(__name__)


class InterpolationMode(enum.Enum):
    """Real, because transformers builds a table of its members at import."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


for _name in ("transforms", "transforms.functional", "transforms.v2", "transforms.v2.functional"):
    _module: Any = importlib.import_module(f"{__name__}.{_name}")
    _module.InterpolationMode = InterpolationMode


def __getattr__(name: str) -> Any:
    return sys.modules.get(f"{__name__}.{name}") or placeholder(__name__, name)
