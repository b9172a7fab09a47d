"""One export from what a person names to a folder and how it is to be checked.

One design choice: which converter is used follows from the family; a person names slime's checkout
at most, never the converter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from slime_ext.weights.table import UnknownFamilyError

from .by_slime import export_by_slime
from .export import export_checkpoint
from .source import Source, find_source
from .verify import Against


@dataclass(frozen=True, slots=True)
class Options:
    """How a checkpoint is exported, or what a folder is expected to be."""

    reference: Path | None = None
    """Folder of the model that was trained; a run's recipe names it."""
    dtype: Literal["bfloat16", "float16", "float32"] | None = None
    """Of the written weights, bfloat16 unless stated; with --verify FOLDER the one to expect."""
    shard_gib: float = 5.0
    """Largest file in GiB."""
    allow_extra: bool = False
    """Leave out tensors that the model's family does not have."""
    slime: Path | None = None
    """slime's checkout, for families that only its converter knows (Qwen3.5); a run's recipe names
    it."""

    def expected(self, source: Source | None) -> Against:
        """What a folder that is there already is held against; `source` where its run is known."""
        if source is None:
            return Against(self.reference, self.dtype, allow_extra=self.allow_extra)
        return Against(source.reference, self.dtype, source.rope_scaling, self.allow_extra)


@dataclass(frozen=True, slots=True)
class Exported:
    """A finished export."""

    checkpoint: Path
    lines: list[str]
    """What was done."""
    against: Against
    """What the folder is to be held against."""


def convert(asked: Path, out: Path, options: Options) -> Exported:
    """Export the checkpoint that `asked` names as the folder `out`.

    Raises what `find_source`, `export_checkpoint` and `export_by_slime` raise.
    """
    source = find_source(asked, options.reference)
    dtype, size = options.dtype or "bfloat16", int(options.shard_gib * 2**30)
    lines = [f"passed over {line}" for line in source.passed_over]
    lines.append(f"exported {source.checkpoint}")
    try:
        report = export_checkpoint(
            source, out, dtype=dtype, shard_bytes=size, allow_extra=options.allow_extra
        )
        lines += report.lines()
    except UnknownFamilyError:
        lines += export_by_slime(source, out, options.slime, dtype, size).lines()
    against = Against(source.reference, dtype, source.rope_scaling)
    return Exported(source.checkpoint, lines, against)
