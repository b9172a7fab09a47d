"""Bytes in use and their peak, on a GPU or of this process.

One design choice: on a GPU torch's allocator is asked; on CPU the kernel is (VmRSS and VmHWM), and
malloc is told by its environment to give every tensor pages of its own, so that what a tensor held
is gone when it is.
"""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path
from typing import Protocol

from launch.plan.measure.share import MeasureError

MALLOC = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_MMAP_MAX_": "1000000", "MALLOC_ARENA_MAX": "1"}
"""For the environment of the measuring process. A threshold that is set no longer grows with use;
with glibc's own, freed tensors of up to 32 MiB stay in the heap and hide in the next peak."""


class Meter(Protocol):
    """Where a measurement reads memory."""

    def used(self) -> int:
        """Bytes in use now; the peak starts again from here."""
        ...

    def peak(self) -> int:
        """The most bytes in use since `used` was last called."""
        ...


class GpuMeter:
    """torch's caching allocator on one GPU: live tensors, not what it keeps in reserve."""

    def __init__(self) -> None:
        import torch

        self._cuda = torch.cuda

    def used(self) -> int:
        gc.collect()
        self._cuda.synchronize()
        self._cuda.reset_peak_memory_stats()
        return int(self._cuda.memory_allocated())

    def peak(self) -> int:
        self._cuda.synchronize()
        return int(self._cuda.max_memory_allocated())


class ProcessMeter:
    """Resident pages of this process, as Linux counts them."""

    def __init__(self, process: Path = Path("/proc/self")) -> None:
        self._status, self._reset = process / "status", process / "clear_refs"
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)

    def used(self) -> int:
        gc.collect()
        if self._trim is not None:
            self._trim(0)
        try:
            # 5 resets VmHWM, the peak, to VmRSS.
            self._reset.write_text("5")
        except OSError as error:
            raise MeasureError(
                f"this system does not let a process reset its memory peak ({error}); measure on "
                "Linux outside a sandbox, or on a GPU"
            ) from None
        return self._read("VmRSS")

    def peak(self) -> int:
        return self._read("VmHWM")

    def _read(self, key: str) -> int:
        for line in self._status.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == key:
                return int(value.split()[0]) * 1024
        raise MeasureError(f"{self._status} has no {key}; measure on Linux, or on a GPU")
