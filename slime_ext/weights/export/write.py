"""Writing an exported model: a folder that appears whole, and goes on where it was interrupted.

One design choice: all work happens in `OUT.partial`, which becomes `OUT` by one rename. In it a
file bears its name only when it is complete, and a finished file of the same plan is kept; so a
full disk or a kill costs one file at most, and nothing half-written can be taken for a model.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from slime_ext.errors import ExplainedError
from slime_ext.weights.export.chunks import ChunkReader
from slime_ext.weights.export.plan import ExportPlan
from slime_ext.weights.export.shards import INDEX, Shard, index_text, plan_shards
from slime_ext.weights.export.stream import TensorStream
from slime_ext.weights.hf_folder import replace_folder

SHARD_BYTES = 5 * 2**30
_PLAN = "export.sha256"
_TEMPORARY = ".writing"


class ExportError(ExplainedError, RuntimeError):
    """An export that could not be finished; says what is there and how to go on."""


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote, kept and left out."""

    out: Path
    tensors: int
    parameters: int
    nbytes: int
    files: tuple[str, ...]
    kept: int
    """Files of an interrupted export that were complete."""
    extra: tuple[str, ...]
    """Stored tensors outside the family's table, left out."""
    optimiser_tensors: int
    objects: int
    """Stored things that are no weights: optimiser state, and no tensors at all."""

    def lines(self) -> list[str]:
        """What was written, what was kept, and what was left out."""
        lines = [
            f"{self.out}: {self.tensors} tensors, {self.parameters:,} parameters, "
            f"{self.nbytes / 1e9:.2f} GB in {len(self.files)} files"
        ]
        if self.kept:
            lines.append(f"{self.kept} files were there from an interrupted export")
        lines.append(
            f"left out: {self.optimiser_tensors} tensors of the optimiser, {self.objects} objects "
            f"that are no tensors, {len(self.extra)} tensors outside the family's table"
        )
        return lines + [f"  {name}" for name in self.extra]


def export_weights(
    plan: ExportPlan,
    out: Path,
    finish: Callable[[Path], None],
    shard_bytes: int = SHARD_BYTES,
    replace: bool = False,
) -> ExportReport:
    """Write the planned model as the folder `out`; `finish` adds its other files to the folder it
    is given, before that becomes `out`.

    Raises ExportError where `out` exists (unless `replace`) or the disk is full, StoredError where
    the checkpoint is not what its index says.
    """
    out = out.absolute()
    if not replace and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ExportError(f"{out} exists and is not empty; name another folder, or remove it first")
    shards = plan_shards(plan, shard_bytes)
    partial = out.with_name(f"{out.name}.partial")
    try:
        done = _prepare(partial, _fingerprint(plan, shards), shards)
        left = [shard for shard in shards if shard.name not in done]
        _require_space(partial, sum(shard.nbytes for shard in left))
        _write_shards(plan, left, partial)
        if len(shards) > 1:
            _write_text(partial / INDEX, index_text(plan, shards))
        finish(partial)
    except OSError as error:
        there = len(_complete(partial, shards))
        raise ExportError(
            f"could not write {partial}: {error}; {there} of {len(shards)} files are done and will "
            "be kept: free space, or move the folder, and give the same command again"
        ) from error
    (partial / _PLAN).unlink()
    replace_folder(partial, out)
    return ExportReport(
        out=out,
        tensors=len(plan.tensors),
        parameters=plan.parameters,
        nbytes=plan.nbytes,
        files=tuple(shard.name for shard in shards),
        kept=len(done),
        extra=plan.extra,
        optimiser_tensors=plan.checkpoint.optimiser_tensors,
        objects=plan.checkpoint.objects,
    )


def _prepare(partial: Path, fingerprint: str, shards: list[Shard]) -> set[str]:
    """Make the folder, or clear one of another plan; returns the files that are complete in it."""
    record = partial / _PLAN
    if partial.is_dir() and not (record.is_file() and record.read_text() == fingerprint):
        shutil.rmtree(partial)
    partial.mkdir(parents=True, exist_ok=True)
    for left_over in partial.glob(f"*{_TEMPORARY}"):
        left_over.unlink()
    record.write_text(fingerprint)
    return _complete(partial, shards)


def _complete(partial: Path, shards: list[Shard]) -> set[str]:
    """Names of the files that are there from first to last byte."""
    done = set()
    for shard in shards:
        path = partial / shard.name
        if path.is_file() and path.stat().st_size == shard.nbytes:
            with path.open("rb") as file:
                if file.read(len(shard.header)) == shard.header:
                    done.add(shard.name)
    return done


def _require_space(partial: Path, needed: int) -> None:
    free = shutil.disk_usage(partial).free
    if free < needed:
        raise ExportError(
            f"{partial} needs {needed / 1e9:.2f} GB more, its disk has {free / 1e9:.2f} GB free; "
            "free space, or name a folder on another disk"
        )


def _write_shards(plan: ExportPlan, shards: list[Shard], folder: Path) -> None:
    total = sum(shard.nbytes for shard in shards)
    with (
        ChunkReader(plan.checkpoint.folder) as reader,
        tqdm(total=total, desc="export", unit="B", unit_scale=True, disable=None) as bar,
    ):
        stream = TensorStream(reader)
        for shard in shards:
            _write_shard(shard, folder / shard.name, stream, bar.update)


def _write_shard(
    shard: Shard, path: Path, stream: TensorStream, progress: Callable[[int], object]
) -> None:
    temporary = path.with_name(path.name + _TEMPORARY)
    try:
        with temporary.open("xb", buffering=0) as file:
            _write_all(file.fileno(), memoryview(shard.header))
            for tensor in shard.tensors:
                for block in stream.blocks(tensor):
                    _write_all(file.fileno(), block)
                    progress(len(block))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _write_all(file: int, data: memoryview) -> None:
    while data:
        data = data[os.write(file, data) :]


def _write_text(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + _TEMPORARY)
    temporary.write_text(text)
    temporary.replace(path)


def _fingerprint(plan: ExportPlan, shards: list[Shard]) -> str:
    """Stands for the checkpoint's files as they are now, and for every byte that is planned."""
    digest = hashlib.sha256()
    for path in sorted(plan.checkpoint.folder.iterdir()):
        status = path.stat()
        digest.update(f"{path.absolute()} {status.st_size} {status.st_mtime_ns}\n".encode())
    for shard in shards:
        digest.update(f"{shard.name} {shard.nbytes}\n".encode() + shard.header)
    return digest.hexdigest()
