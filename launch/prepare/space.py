"""Is there room on the disk, before anything is fetched.

One design choice: a fetch that would leave less than a twentieth of itself free is refused at once;
a disk that fills up after two hours takes every other job on it down too.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from slime_ext.errors import ExplainedError

MARGIN = 1.05


def require_space(folder: Path, size: int, what: str, setting: str) -> None:
    """Raise ExplainedError where the disk of `folder` lacks `size` bytes and a twentieth more.

    `folder` need not exist. `setting` says what moves it elsewhere.
    """
    there = folder.resolve()
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    if size * MARGIN > free:
        raise ExplainedError(
            f"{what} needs {gigabytes(size * MARGIN)} at {folder}, {gigabytes(free)} are free; "
            f"free some or choose another place with {setting}"
        )


def gigabytes(size: float) -> str:
    """Bytes for people: 8.04 GB."""
    return f"{size / 1e9:,.2f} GB"
