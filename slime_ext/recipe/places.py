"""Where the project's own configuration files lie.

One design choice: a checkout is recognised by its pyproject.toml and used as it stands; anywhere
else the folder is the installed package `longrl_configs`, so recipes and model facts are found
without a checkout.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path


def configs_folder() -> Path:
    """The folder `configs` of this checkout or installation.

    Raises FileNotFoundError where an installation lacks it.
    """
    root = Path(__file__).resolve().parents[2]
    if (root / "pyproject.toml").is_file() and (root / "configs").is_dir():
        return root / "configs"
    spec = importlib.util.find_spec("longrl_configs")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            "the package longrl_configs is not installed; install longrl again (pip install longrl)"
        )
    return Path(next(iter(spec.submodule_search_locations)))
