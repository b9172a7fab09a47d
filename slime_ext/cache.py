"""Where things are kept between runs: converted data sets and models.

One design choice: one folder for all of them, movable by one variable, because on a cluster it has
to lie where the login node and every compute node see the same files.
"""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "LONGRL_CACHE"


def cache_folder() -> Path:
    """$LONGRL_CACHE, else $XDG_CACHE_HOME/longrl, else ~/.cache/longrl; it need not exist."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "longrl"
