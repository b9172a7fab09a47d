"""Whether a run ended because the disk of its checkpoints is full.

One design choice: judged by the room left after the end. torch reports a disk that fills up
while it saves as a wrong position in a file, and the program's own last words do not name it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from launch.job.resume import newest_resumable

FULL_BYTES = 2**20
"""Room below which a disk counts as full where no checkpoint tells how much one takes."""


def full_disk(checkpoints: Path) -> str | None:
    """A line that says so where another checkpoint has no room, None where it has."""
    if not checkpoints.is_dir():
        return None
    free = shutil.disk_usage(checkpoints).free
    newest, _ = newest_resumable(checkpoints)
    if newest is None:
        needed, kept = FULL_BYTES, "no checkpoint was written yet"
    else:
        needed = sum(path.stat().st_size for path in newest.iterdir())
        kept = f"{newest.name} is whole and the next job goes on from it"
    if free >= needed:
        return None
    return (
        f"the disk of {checkpoints} is full: {free / 1e6:,.0f} MB are free and a checkpoint takes "
        f"{needed / 1e6:,.0f} MB; {kept}. Free space or lower checkpoint.keep, then submit again"
    )
