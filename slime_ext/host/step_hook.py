"""Saving on request inside slime's trainer, and the end of its processes after that.

One design choice: the only moment is before the first update of a rollout. There the state is what
the rollout before left, so it is saved under that rollout's number and a restart repeats nothing
that was learnt; in the middle of a rollout no number would describe it.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from slime_ext.errors import ExplainedError
from slime_ext.metrics.records import Records
from slime_ext.metrics.stop_flag import StopFlag

MARKER = "latest_checkpointed_iteration.txt"
"""Megatron's file that names the newest checkpoint; written when all of it is."""
GO_ON, STOP, SAVE = 0, 1, 2


class StoppedOnRequestError(ExplainedError, RuntimeError):
    """The run was asked to stop; its state is saved and its processes end."""


def stop_if_asked(
    args: Any, rollout_id: int, step_id: int, model: Sequence[Any], optimizer: Any, scheduler: Any
) -> None:
    """Save and raise StoppedOnRequestError on every rank, where the run was asked to stop.

    `args` are slime's, with `longrl_recipe`; `step_id` counts the updates of rollout `rollout_id`.
    A rollout that is saved already, or rollout 0, whose state is the base model, is not saved.
    """
    if step_id != 0:
        return
    run, iteration = Path(args.longrl_recipe).parent, rollout_id - 1
    flag = StopFlag(run)
    if _agreed(STOP if flag.asked() else GO_ON) == GO_ON:
        return
    _finish_pending_save(args)
    if _agreed(STOP if _is_saved(args, iteration) else SAVE) == SAVE:
        save = importlib.import_module("slime.backends.megatron_utils.model").save
        save(iteration, model, optimizer, scheduler)
        _finish_pending_save(args)
    _barrier()
    if _rank() == 0:
        Records(run).event("stopped", step=iteration, reason=flag.asked())
        flag.answer(iteration)
    # The first rank that ends takes the others with it: not before the answer is there.
    _barrier()
    raise StoppedOnRequestError(
        f"asked to stop before the update of rollout {rollout_id}: everything up to rollout "
        f"{iteration} is saved, and the next attempt goes on from there"
    )


def _is_saved(args: Any, iteration: int) -> bool:
    """Whether a checkpoint of `iteration` is there; nothing has to be saved before rollout 0."""
    marker = Path(args.save) / MARKER
    return iteration < 0 or (marker.is_file() and marker.read_text().strip() == str(iteration))


def _finish_pending_save(args: Any) -> None:
    if getattr(args, "async_save", False):
        importlib.import_module("megatron.training.async_utils").maybe_finalize_async_save(
            blocking=True
        )


def _agreed(number: int) -> int:
    """Rank 0's `number`, on every rank: a file that appears between two looks would split them."""
    import torch
    import torch.distributed as dist

    said = torch.tensor([number])
    dist.broadcast(said, src=0, group=_gloo_group())
    return int(said.item())


def _barrier() -> None:
    import torch.distributed as dist

    dist.barrier(group=_gloo_group())


def _rank() -> int:
    import torch.distributed as dist

    return dist.get_rank()


def _gloo_group() -> Any:
    """slime's group of all ranks on the host: it lives while the GPUs' groups come and go."""
    return importlib.import_module("slime.utils.distributed_utils").get_gloo_group()
