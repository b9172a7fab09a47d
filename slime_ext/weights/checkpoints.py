"""The checkpoints of a run: folders `iter_N`, and what one of them lacks.

One design choice: completeness is judged from the files, not from the marker, which is written by
somebody else and may be older or newer than what lies on the disk.
"""

from __future__ import annotations

from pathlib import Path

from slime_ext.weights.torch_dist import METADATA, BrokenIndexError, pieces

MARKER = "latest_checkpointed_iteration.txt"
"""File beside the folders that names the newest; Megatron's own name for it."""


def checkpoints(root: Path) -> list[Path]:
    """Folders `iter_N` of `root`, complete or not, in order."""
    found = [one for one in root.glob("iter_*") if one.name.removeprefix("iter_").isdigit()]
    return sorted(found, key=iteration_of)


def iteration_of(folder: Path) -> int:
    """Number in the name `iter_0000020`."""
    return int(folder.name.removeprefix("iter_"))


def incomplete(folder: Path) -> str | None:
    """What a torch_dist checkpoint lacks, None where it is whole.

    `.metadata` is written last and says how far into each file its tensors reach.
    """
    for name in (METADATA, "common.pt", "metadata.json"):
        if not _size(folder / name):
            return f"{name} is missing or empty"
    try:
        found = pieces(folder)
    except BrokenIndexError as error:
        return str(error)
    ends: dict[str, int] = {}
    for piece in found:
        ends[piece.file] = max(ends.get(piece.file, 0), piece.offset + piece.length)
    if not ends:
        return f"{METADATA} names no file"
    short = sorted(name for name, end in ends.items() if _size(folder / name) < end)
    if short:
        return f"{len(short)} of {len(ends)} files missing or cut off, the first {short[0]}"
    return None


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
