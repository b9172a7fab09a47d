"""A small checkpoint in Megatron's torch_dist format, with the position in the data beside it."""

from __future__ import annotations

import json
from pathlib import Path

from slime_ext.rollout.positions import Positions

WEIGHTS = ("embedding.word_embeddings.weight", "decoder.layers.mlp.linear_fc1.weight")
OPTIMISER = (
    "optimizer.state.exp_avg.embedding.word_embeddings.weight",
    "chained_0.optimizer.state.exp_avg_sq.decoder.layers.mlp.linear_fc1.weight",
)
SIZE = 256
"""Numbers in each tensor."""


def write_checkpoint(root: Path, iteration: int, position: bool = True) -> Path:
    """Write `root/iter_N` as Megatron does for one rank; every number in it is `iteration`."""
    import torch
    import torch.distributed.checkpoint as dcp

    folder = root / f"iter_{iteration:07d}"
    state = {key: torch.full((SIZE,), float(iteration)) for key in WEIGHTS + OPTIMISER}
    dcp.save(state, storage_writer=dcp.FileSystemWriter(folder), no_dist=True)
    torch.save({"iteration": iteration}, folder / "common.pt")
    (folder / "metadata.json").write_text(json.dumps({"sharded_backend": "torch_dist"}))
    if position:
        Positions(root).write(iteration, {})
    return folder


def read_checkpoint(folder: Path) -> dict[str, float]:
    """The first number of each tensor in a checkpoint."""
    import torch
    import torch.distributed.checkpoint as dcp

    reader = dcp.FileSystemReader(folder)
    state = {
        key: torch.empty(value.size)
        for key, value in reader.read_metadata().state_dict_metadata.items()
    }
    dcp.load(state, storage_reader=dcp.FileSystemReader(folder), no_dist=True)
    return {key: float(value[0]) for key, value in state.items()}
