"""`longrl export`: a Megatron checkpoint as a Hugging Face folder, and whether one is whole.

One design choice: every export is checked by its headers, which takes a moment; `--verify` does the
same to any folder, and further switches look deeper in both cases.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import tyro
from longrl_tools.export.check import Depth, check_folder
from longrl_tools.export.convert import Options, convert
from longrl_tools.export.source import find_source
from longrl_tools.export.verify import Against
from longrl_tools.export.watch import Following, Watch, lowest_priority

from launch.slurm.find_run import is_run
from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.weights.export.plan import ExtraTensorsError

Paths = Annotated[
    tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="RUN_OR_CHECKPOINT OUT")
]
Flat = tyro.conf.arg(name="")


class ExportUsageError(ExplainedError, ValueError):
    """The command was given too few or too many folders."""


def export(
    paths: Paths,
    options: Annotated[Options, Flat],
    depth: Annotated[Depth, Flat],
    following: Annotated[Following, Flat],
    verify: bool = False,
    checkpoint: Path | None = None,
) -> int:
    """Export a Megatron checkpoint (torch_dist) as a folder that transformers loads, and check it.

    Needs no GPU, no Megatron and no slime. An interrupted export goes on with the same command.
    Exit code 1 where the folder has a fault, or the checkpoint tensors its family does not have.

    Args:
        paths: A run (its newest complete checkpoint) or a checkpoint iter_NNNNNNN, and the folder
            to write, OUT.partial until it is whole. With --verify also a single folder, to check.
        options: How it is exported.
        depth: What is checked beside headers and small files.
        following: Exporting while a run trains.
        verify: Check a folder that is there; needs no checkpoint.
        checkpoint: With --verify FOLDER: the run or checkpoint it was exported from, whose recipe
            names the base model and its rotation; --prompt compares with its model.
    """
    paths = tuple(map(_run_or_path, paths[:1])) + paths[1:]
    try:
        if verify and len(paths) == 1:
            start = _run_or_path(checkpoint) if checkpoint else None
            source = find_source(start, options.reference) if start else None
            against = options.expected(source)
            return _check(paths[0], against, depth, source.checkpoint if source else None)
        if following.watch and len(paths) in (1, 2):
            out = paths[1] if len(paths) == 2 else paths[0] / "exports"
            return _follow(paths[0], out, options, depth, following)
        if len(paths) == 2:
            return _export(paths[0], paths[1], options, depth)
    except ExtraTensorsError as error:
        print(f"longrl: {error}", file=sys.stderr)
        return 1
    raise ExportUsageError(
        "name a run or checkpoint and the folder to write: `longrl export RUN OUT`; or a folder to "
        "check: `longrl export --verify FOLDER`; or a run to follow: `longrl export --watch RUN`"
    )


def _run_or_path(path: Path) -> Path:
    """A name that is no path means the run of that name below `runs/`."""
    below = Path("runs") / path
    return below if not path.exists() and is_run(below) else path


def _export(asked: Path, out: Path, options: Options, depth: Depth) -> int:
    """Export and check one checkpoint; 1 where the folder has a fault."""
    done = convert(asked, out, options)
    for line in done.lines:
        print(line, flush=True)
    return _check(out, done.against, depth, done.checkpoint)


def _check(folder: Path, against: Against, depth: Depth, checkpoint: Path | None) -> int:
    found = check_folder(folder, against, depth, checkpoint)
    for line in found.lines():
        print(line, flush=True)
    return 0 if found.ok else 1


def _follow(run: Path, out: Path, options: Options, depth: Depth, following: Following) -> int:
    """Export the checkpoints of a run as they come; 1 where one of the folders has a fault."""
    folder = RunFolder(run)
    if not folder.recipe.is_file():
        raise ExportUsageError(f"--watch {run}: it holds no recipe.toml; name a run, runs/NAME")
    lowest_priority()
    codes = [0]

    def one(checkpoint: Path, target: Path) -> None:
        codes.append(_export(checkpoint, target, options, depth))

    for line in Watch(folder, out, one, following.best).follow(following.every_s):
        print(line, flush=True)
    return max(codes)
