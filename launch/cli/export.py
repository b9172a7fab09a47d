"""`longrl export`: a Megatron checkpoint as a Hugging Face folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import tyro

Asked = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN_OR_CHECKPOINT")]
Out = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")]


def export(
    checkpoint: Asked,
    out: Out,
    reference: Path | None = None,
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16",
    shard_gib: float = 5.0,
    allow_extra: bool = False,
) -> int:
    """Export a Megatron checkpoint (torch_dist) as a folder that transformers loads.

    Needs no GPU, no Megatron and no slime. An interrupted export goes on with the same command.
    Exit code 1 where the checkpoint holds tensors that the model's family does not have.

    Args:
        checkpoint: A run (its newest complete checkpoint), or a checkpoint iter_NNNNNNN.
        out: The folder to write; OUT.partial until it is whole.
        reference: Folder of the model that was trained; a run's recipe names it.
        dtype: Of the written weights.
        shard_gib: Largest file in GiB.
        allow_extra: Leave out tensors that the model's family does not have.
    """
    from longrl_tools.export.export import export_checkpoint
    from longrl_tools.export.source import find_source

    from slime_ext.weights.export.plan import ExtraTensorsError

    source = find_source(checkpoint, reference)
    for line in source.passed_over:
        print(f"passed over {line}")
    print(f"exporting {source.checkpoint}", flush=True)
    try:
        report = export_checkpoint(
            source,
            out,
            dtype=dtype,
            shard_bytes=int(shard_gib * 2**30),
            allow_extra=allow_extra,
        )
    except ExtraTensorsError as error:
        print(f"longrl: {error}", file=sys.stderr)
        return 1
    for line in report.lines():
        print(line)
    return 0
