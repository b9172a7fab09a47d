"""Megatron's torch_dist writer without child processes.

One design choice: Megatron's own planning and file format are kept and only the writing moves into
this process. Forking a process that runs torch and an HTTP server can deadlock, a spawned queue
manager re-imports the main module, and the two cost seconds for a model of a few hundred kilobytes.
"""

from __future__ import annotations

import queue
from pathlib import Path
from typing import Any

from megatron.core.dist_checkpointing.strategies import filesystem_async
from megatron.core.dist_checkpointing.strategies.filesystem_async import FileSystemWriterAsync
from megatron.core.dist_checkpointing.strategies.torch import TorchDistSaveShardedStrategy


class InProcessTorchDist(TorchDistSaveShardedStrategy):
    """Save strategy `torch_dist`, one file, written here and now."""

    def __init__(self) -> None:
        super().__init__("torch_dist", 1, thread_count=1)

    def save(self, sharded_state_dict: dict[str, Any], checkpoint_dir: Path) -> None:
        """Write all tensors; a writer's exception surfaces when the results are collected."""
        # Megatron makes a multiprocessing manager for this queue unless one is there already.
        filesystem_async._results_queue = results = queue.Queue[Any]()
        request = self.async_save(sharded_state_dict, checkpoint_dir)
        if request.async_fn is not None:
            _, buckets, _ = request.async_fn_args
            results.put(_write(request.async_fn.args[0], buckets))
        for finalize in request.finalize_fns:
            finalize()


def _write(transforms: list[Any], buckets: list[Any]) -> dict[int, Any] | Exception:
    """The results that Megatron collects: write records by bucket, or the first exception."""
    records: dict[int, Any] = {}
    for number, bucket in enumerate(buckets):
        answer: queue.Queue[tuple[int, Any]] = queue.Queue()
        pending: queue.Queue[int] = queue.Queue()
        pending.put(number)
        FileSystemWriterAsync.write_preloaded_data(
            transforms, number, bucket, answer, pending, True
        )
        outcome = answer.get()[1]
        if isinstance(outcome, Exception):
            return outcome
        records[number] = outcome
    return records
