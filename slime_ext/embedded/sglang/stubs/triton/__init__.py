"""Placeholder for triton: kernels can be defined, none can be launched.

SGLang defines hundreds of kernels at import; on CPU it runs torch's own operators instead. The real
package works as well and takes a gigabyte.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from longrl_stubs import AbsentError, answer_submodules, placeholder

__version__ = "3.9.0"
answer_submodules(__name__)


class Kernel:
    """A function under `@triton.jit`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.fn = function
        self.__name__ = getattr(function, "__name__", "kernel")

    def __getitem__(self, grid: Any) -> Any:
        raise AbsentError(
            f"the triton kernel {self.__name__} was launched, but triton is a placeholder in this "
            "environment; this model or option needs SGLang on a GPU"
        )

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self[None]


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`@triton.jit`, with and without options."""
    return Kernel if function is None else Kernel(function)


def _unchanged(*args: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda kernel: kernel


autotune = heuristics = _unchanged


def cdiv(a: int, b: int) -> int:
    """Real: SGLang uses it outside kernels."""
    return -(-a // b)


def next_power_of_2(n: int) -> int:
    """Real: SGLang uses it outside kernels."""
    return 1 << (n - 1).bit_length() if n > 0 else 1


class _NoDriver:
    """`triton.runtime.driver`: asking for the active one raises, as triton does without a GPU."""

    @property
    def active(self) -> Any:
        raise AbsentError("0 active drivers: triton is a placeholder in this environment")


_runtime: Any = importlib.import_module(f"{__name__}.runtime")
_runtime.driver = _NoDriver()


def __getattr__(name: str) -> Any:
    if name in ("language", "runtime", "compiler", "backends", "tools", "testing"):
        return importlib.import_module(f"{__name__}.{name}")
    return placeholder(__name__, name)
