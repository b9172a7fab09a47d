"""Checkpoints in the torch_dist format written by torch alone, with any keys and pieces one likes.

Megatron's files of layouts that megatron-core does not write without a GPU have the same form.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slime_ext.weights.names import hf_to_megatron
from slime_ext.weights.shape import shape_from_config
from tests.fakes.megatron_checkpoints import megatron_args, random_weights


def write_plain(folder: Path, tensors: Mapping[str, Any], args: Namespace | None = None) -> Path:
    """Write `tensors` and `args` as one process would."""
    import torch
    import torch.distributed.checkpoint as dcp

    writer = dcp.FileSystemWriter(folder)
    dcp.save(dict(tensors), storage_writer=writer, no_dist=True)
    torch.save({"args": args, "iteration": 3}, folder / "common.pt")
    (folder / "metadata.json").write_text(json.dumps({"sharded_backend": "torch_dist"}))
    return folder


def write_live_names(folder: Path, config: dict[str, Any], dtype: str = "bfloat16") -> Path:
    """The model of `config` under the names of a live local-spec model, layers numbered."""
    shape = shape_from_config(config)
    tensors = hf_to_megatron(random_weights(config, dtype), shape)
    return write_plain(folder, tensors, megatron_args(shape, shape.vocab_size, 1))
