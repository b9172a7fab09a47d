"""A Hugging Face folder as a torch_dist checkpoint, on CPU: what the embedded trainer starts from.

One design choice: Megatron's own writer gets the tensors under the keys of the family's table, with
no Megatron model built, so every family of the table can be written, those included that only the
cluster trains.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from slime_ext.errors import ExplainedError
from slime_ext.weights.checkpoints import MARKER
from slime_ext.weights.hf_folder import read_hf, replace_folder
from slime_ext.weights.shape import ModelShape, read_shape

ITERATION = 0


class ImportFolderError(ExplainedError, ValueError):
    """A folder that cannot be made a checkpoint; says why."""


@dataclass(frozen=True, slots=True)
class Imported:
    """What was written."""

    checkpoint: Path
    tensors: int
    parameters: int


def import_folder(folder: Path, out: Path) -> Imported:
    """Write the model of `folder` as `out/iter_0000000` with the marker beside it, in the dtype it
    has, without optimiser state.

    Peak memory is about the model's own size: Megatron's writer wants all tensors at once. Raises
    ImportFolderError for a folder that is no model of a known family, where `out` holds something
    or cannot be written; FileNotFoundError where there is no config or no weights.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ImportFolderError(f"{out} exists and is not empty; name another folder")
    try:
        shape = read_shape(folder)
    except ValueError as error:
        raise ImportFolderError(str(error)) from error
    return _write(folder, shape, out)


def _write(folder: Path, shape: ModelShape, out: Path) -> Imported:
    from megatron.core import dist_checkpointing
    from megatron.core.dist_checkpointing import ShardedTensor
    from megatron.core.dist_checkpointing.core import CheckpointingException
    from torch.distributed.checkpoint.api import CheckpointException

    from slime_ext.embedded.checkpoint import checkpoint_args
    from slime_ext.embedded.megatron_cpu import init_single_process
    from slime_ext.embedded.torch_dist import InProcessTorchDist
    from slime_ext.weights.names import hf_to_megatron, rows

    try:
        tensors = hf_to_megatron(read_hf(folder), shape)
    except ValueError as error:
        raise ImportFolderError(f"{folder}: {error}") from error
    init_single_process()
    model = {}
    for named in rows(shape):
        place = next(named.stored(shape))
        axes = zip(range(len(place.lead)), place.lead, place.lengths, strict=True)
        model[named.megatron] = ShardedTensor.from_rank_offsets(
            place.key, tensors[named.megatron], *axes, prepend_axis_num=len(place.lead)
        )
    state = {
        "model": model,
        "args": checkpoint_args(shape),
        "iteration": ITERATION,
        "checkpoint_version": 3.0,
    }
    checkpoint = out / f"iter_{ITERATION:07d}"
    partial = out / f".{checkpoint.name}.partial"
    try:
        partial.mkdir(parents=True)
        dist_checkpointing.save(state, str(partial), InProcessTorchDist())
        replace_folder(partial, checkpoint)
        (out / MARKER).write_text(str(ITERATION))
    except (OSError, RuntimeError, CheckpointException, CheckpointingException) as error:
        raise ImportFolderError(
            f"could not write {checkpoint}: {error}; free space on the disk, or name another folder"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Imported(checkpoint, len(model), sum(one.numel() for one in tensors.values()))
