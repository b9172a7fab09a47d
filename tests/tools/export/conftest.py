"""A good folder of each family, made once and copied for tests that plant faults."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tools.export.folders import make_folder


@pytest.fixture(scope="session")
def made_folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bool], Path]:
    """The good folder of a family, tied or not."""
    root = tmp_path_factory.mktemp("folders")

    def made(family: str, tied: bool) -> Path:
        folder = root / f"{family}-{'tied' if tied else 'untied'}"
        return folder if folder.is_dir() else make_folder(folder, family, tied)

    return made


@pytest.fixture
def good(made_folders: Callable[[str, bool], Path], tmp_path: Path) -> Callable[..., Path]:
    """A copy of the good folder, to be damaged."""

    def copy(family: str = "qwen3", tied: bool = False) -> Path:
        return shutil.copytree(made_folders(family, tied), tmp_path / f"{family}-copy")

    return copy
