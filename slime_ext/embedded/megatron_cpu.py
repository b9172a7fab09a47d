"""megatron-core 0.16.1 without CUDA: every adaptation the trainer needs, each with its reason.

One design choice: adaptations replace names in torch or megatron-core once, at `adapt()`, and are
listed here alone; nothing else in the project patches the host. Extended only when a feature needs
it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

_adapted = False


def adapt() -> None:
    """Make megatron-core usable on a machine without CUDA; does nothing the second time, or where
    CUDA is there."""
    global _adapted
    if _adapted or torch.cuda.is_available():
        return
    from megatron.core.dist_checkpointing.strategies import filesystem_async
    from megatron.core.tensor_parallel import random as megatron_random

    # dist_checkpointing and optimiser code ask for the current device to place tensors on it.
    torch.cuda.current_device = _cpu_device  # type: ignore[assignment]
    # dist_checkpointing waits for copies that here were never started.
    torch.cuda.synchronize = _nothing
    # dist_checkpointing moves loaded tensors with Tensor.cuda().
    torch.Tensor.cuda = _same_tensor  # type: ignore[method-assign, assignment]
    # Dropout forks a CUDA generator; every dropout here is 0, so there is nothing to fork.
    megatron_random.CudaRNGStatesTracker.fork = _no_fork
    # The checkpoint writer demands psutil for two debug lines about its memory.
    filesystem_async._process_memory = _no_memory
    _adapted = True


def init_single_process() -> None:
    """Start gloo and Megatron's parallel state for one process; does nothing where both run.

    Uses an in-memory store, so no port is opened and two runs on one machine cannot meet.
    """
    adapt()
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.random import initialize_rng_tracker

    if not dist.is_initialized():
        # Without it gloo resolves the host's name, which fails on machines off the network.
        if os.path.exists("/sys/class/net/lo"):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    if not parallel_state.model_parallel_is_initialized():
        parallel_state.initialize_model_parallel()
        initialize_rng_tracker()


def _cpu_device() -> torch.device:
    return torch.device("cpu")


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _no_memory() -> int:
    return 0


def _same_tensor(tensor: Tensor, *_: Any, **__: Any) -> Tensor:
    return tensor


@contextlib.contextmanager
def _no_fork(*_: Any, **__: Any) -> Iterator[None]:
    yield
