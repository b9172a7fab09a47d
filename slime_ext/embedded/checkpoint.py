"""Checkpoints in Megatron's torch_dist format, which slime's converter and Megatron read.

One design choice: a checkpoint is written under a temporary name and renamed, and
`latest_checkpointed_iteration.txt` is replaced last, so whatever fails in between leaves the
previous checkpoint the latest.
"""

from __future__ import annotations

import re
import shutil
from argparse import Namespace
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from megatron.core import dist_checkpointing
from megatron.core.dist_checkpointing.core import CheckpointingException
from megatron.core.dist_checkpointing.optimizer import (
    get_param_id_to_sharded_param_map,
    optim_state_to_sharding_state,
)
from torch.distributed.checkpoint import CheckpointException

from slime_ext.embedded.model import PolicyModel
from slime_ext.embedded.torch_dist import InProcessTorchDist
from slime_ext.errors import ExplainedError
from slime_ext.weights.checkpoints import MARKER, checkpoints, incomplete, iteration_of
from slime_ext.weights.hf_folder import replace_folder
from slime_ext.weights.shape import ModelShape


class CheckpointError(ExplainedError, RuntimeError):
    """A checkpoint could not be written or read; says which, and what is still usable."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Training steps and optimiser updates done."""

    step: int
    updates: int


def save_checkpoint(
    root: Path,
    model: PolicyModel,
    optimiser: torch.optim.Optimizer,
    counters: Counters,
    shape: ModelShape,
    keep: int,
) -> Path:
    """Write `root/iter_NNNNNNN` for `counters.step`, then remove all but the newest `keep`.

    Raises CheckpointError where writing fails; earlier checkpoints are untouched then.
    """
    final = root / f"iter_{counters.step:07d}"
    temporary = root / f".{final.name}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        temporary.mkdir(parents=True)
        state = {
            **_sharded_state(model, optimiser),
            "args": checkpoint_args(shape),
            "iteration": counters.step,
            "checkpoint_version": 3.0,
            "longrl": asdict(counters),
        }
        dist_checkpointing.save(state, str(temporary), InProcessTorchDist())
        replace_folder(temporary, final)
        _write_latest(root, counters.step)
    except (OSError, RuntimeError, CheckpointException, CheckpointingException) as error:
        raise CheckpointError(
            f"could not write checkpoint {final}: {error}; earlier checkpoints are untouched; if "
            "the disk is full, free space on it or choose another run folder"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    for old in _iterations(root)[:-keep]:
        shutil.rmtree(root / f"iter_{old:07d}", ignore_errors=True)
    return final


def load_checkpoint(
    root: Path, model: PolicyModel, optimiser: torch.optim.Optimizer, shape: ModelShape
) -> Counters:
    """Load the latest checkpoint of `root` into model and optimiser.

    Raises FileNotFoundError where there is none, CheckpointError for one of another model.
    """
    folder = _of_this_model(root, shape)
    state = _sharded_state(model, optimiser)
    loaded = dist_checkpointing.load(state, str(folder))
    model.load_state_dict(loaded["model"])
    moments = loaded["optimizer"]
    step = moments.pop("common_step")
    for values in moments["state"].values():
        values["step"] = torch.tensor(float(step))
    optimiser.load_state_dict(moments)
    return Counters(**loaded["longrl"])


def load_model(root: Path, model: PolicyModel, shape: ModelShape) -> None:
    """Load the weights alone of the latest checkpoint of `root`, cast to the model's dtype; what
    `longrl import` writes holds nothing else. Raises as `load_checkpoint`."""
    load_tensors(_of_this_model(root, shape), model)


def load_tensors(folder: Path, model: PolicyModel) -> None:
    """Load the weights alone of one checkpoint folder, whoever wrote it; a padded vocabulary is cut
    to the model's. Raises CheckpointingException for weights that do not fit."""
    # Layers of Megatron's also store an empty object each, for Transformer Engine's.
    sharded = model.sharded_state_dict()
    tensors = {name: part for name, part in sharded.items() if not name.endswith("_extra_state")}
    loaded = dist_checkpointing.load({"model": tensors}, str(folder))
    model.load_state_dict(loaded["model"])


def has_checkpoint(root: Path) -> bool:
    """Whether there is one to go on from. Where the tracker file is lost it is written anew, for
    the newest folder that is whole: starting over would remove what is there."""
    if (root / MARKER).is_file():
        return True
    whole = [folder for folder in checkpoints(root) if incomplete(folder) is None]
    if whole:
        _write_latest(root, iteration_of(whole[-1]))
    return bool(whole)


def latest_checkpoint(root: Path) -> Path:
    """The folder `root/iter_NNNNNNN` that the tracker file names."""
    tracker = root / MARKER
    if not tracker.is_file():
        raise FileNotFoundError(f"{root} holds no {MARKER}: there is no checkpoint to resume from")
    folder = root / f"iter_{int(tracker.read_text()):07d}"
    if not folder.is_dir():
        there = [f"iter_{number:07d}" for number in _iterations(root)]
        raise FileNotFoundError(f"{tracker} names {folder.name}, which is gone; there are {there}")
    return folder


def checkpoint_args(shape: ModelShape) -> Namespace:
    """What `common.pt` states about the model, under Megatron's argument names; slime's
    `tools/convert_torch_dist_to_hf.py` reads these."""
    return Namespace(
        num_layers=shape.num_layers,
        hidden_size=shape.hidden_size,
        ffn_hidden_size=shape.ffn_size,
        num_attention_heads=shape.num_heads,
        num_query_groups=shape.num_kv_heads,
        kv_channels=shape.head_dim,
        vocab_size=shape.vocab_size,
        padded_vocab_size=shape.vocab_size,
        max_position_embeddings=shape.max_position_embeddings,
        rotary_base=shape.rope_theta,
        norm_epsilon=shape.rms_norm_eps,
        qk_layernorm=shape.qk_norm,
        untie_embeddings_and_output_weights=not shape.tied_embeddings,
        num_experts=shape.moe.num_experts if shape.moe else None,
        moe_ffn_hidden_size=shape.moe.ffn_size if shape.moe else None,
        moe_router_topk=shape.moe.top_k if shape.moe else None,
        q_lora_rank=None,
        tensor_model_parallel_size=1,
        pipeline_model_parallel_size=1,
    )


def _sharded_state(model: PolicyModel, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    weights = model.sharded_state_dict()
    moments = optimiser.state_dict()
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    moments["common_step"] = float(optimiser.state[parameters[0]]["step"])
    sharded = get_param_id_to_sharded_param_map(weights, parameters)
    optim_state_to_sharding_state(moments, sharded, exclude_keys=("step",))
    return {"model": weights, "optimizer": moments}


def _of_this_model(root: Path, shape: ModelShape) -> Path:
    """The latest checkpoint, of the model that `shape` describes."""
    folder = latest_checkpoint(root)
    stored = dist_checkpointing.load_common_state_dict(str(folder))
    _check_args(folder, stored["args"], checkpoint_args(shape))
    return folder


def _check_args(folder: Path, stored: Namespace, expected: Namespace) -> None:
    wrong = [
        f"{name} is {getattr(stored, name, None)}, the model has {value}"
        for name, value in vars(expected).items()
        if getattr(stored, name, None) != value
    ]
    if wrong:
        raise CheckpointError(
            f"{folder} belongs to another model: {'; '.join(wrong)}; set model.path to the model "
            "this run was started with, or start a run of another name"
        )


def _write_latest(root: Path, iteration: int) -> None:
    temporary = root / f".{MARKER}.tmp"
    temporary.write_text(str(iteration))
    temporary.replace(root / MARKER)


def _iterations(root: Path) -> list[int]:
    found = (re.fullmatch(r"iter_(\d{7,})", path.name) for path in root.iterdir())
    return sorted(int(match[1]) for match in found if match)
