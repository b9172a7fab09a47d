"""A checkpoint as a model that people can load: weights, side files and a model card.

One design choice: everything is written into one folder before it gets its name; weights by
`slime_ext/weights/export/`, which the embedded trainer uses too, the rest by the files beside this.
"""

from __future__ import annotations

from pathlib import Path

from slime_ext.weights.export.plan import plan_export, refuse_extra
from slime_ext.weights.export.write import SHARD_BYTES, ExportReport, export_weights

from .configs import read_config
from .model_card import write_card
from .run_facts import gather
from .side_files import write_side_files
from .source import Source, SourceError


def export_checkpoint(
    source: Source,
    out: Path,
    *,
    dtype: str = "bfloat16",
    shard_bytes: int = SHARD_BYTES,
    allow_extra: bool = False,
) -> ExportReport:
    """Export a torch_dist checkpoint as the Hugging Face folder `out`.

    Raises SourceError for a reference without a config, PlanError where checkpoint and reference
    are not of one model, ExtraTensorsError for tensors outside the family's table (unless
    `allow_extra`), StoredError for a checkpoint that is not whole, ExportError where `out` exists
    or cannot be written, UnknownFamilyError for a family without a table.
    """
    try:
        config = read_config(source.reference)
    except (FileNotFoundError, ValueError) as error:
        raise SourceError(f"--reference {source.reference}: config.json {error}") from error
    plan = plan_export(source.checkpoint, config, dtype)
    if not allow_extra:
        refuse_extra(plan)
    facts = gather(source.run, source.checkpoint) if source.run else None

    def finish(folder: Path) -> None:
        write_side_files(source.reference, folder, dtype, source.rope_scaling)
        write_card(folder, source.reference, out.name, facts)

    return export_weights(plan, out, finish, shard_bytes)
