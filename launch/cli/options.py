"""Options several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

RecipePath = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RECIPE.toml")]
"""The recipe file."""

Overrides = Annotated[
    tyro.conf.UseAppendAction[tuple[str, ...]],
    tyro.conf.arg(name="set", metavar="SECTION.KEY=VALUE", help="Change one key; may be repeated."),
]
"""`--set section.key=value`, each value read as TOML."""

RunName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
"""Name or folder of a run."""

RunsFolder = Annotated[Path, tyro.conf.arg(metavar="FOLDER")]
"""Folder that holds the run folders."""
