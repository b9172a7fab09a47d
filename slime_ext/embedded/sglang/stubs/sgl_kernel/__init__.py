"""Placeholder for SGLang's compiled kernels.

SGLang imports a few functions ending in `_cpu` on any CPU machine and calls them only with AMX.
Only those names exist: SGLang tests for others to learn which kernels it may use.
"""

from __future__ import annotations

from typing import Any

from longrl_stubs import Absent, placeholder

__version__ = "0.0.0"


def __getattr__(name: str) -> Absent:
    if not name.endswith("_cpu"):
        raise AttributeError(f"sgl_kernel is a placeholder without {name!r}")
    kernel: Any = placeholder(__name__, name)
    return kernel()  # type: ignore[no-any-return]
