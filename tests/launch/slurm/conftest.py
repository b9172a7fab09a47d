"""A run folder and stand-ins for SLURM."""

from __future__ import annotations

from pathlib import Path

import pytest

from slime_ext.recipe.load import dump_recipe
from tests.launch.recipes import dense_recipe
from tests.launch.slurm.programs import Programs


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(tmp_path, monkeypatch)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run called `dense` that was submitted as jobs 11 and 12."""
    folder = tmp_path / "runs" / "dense"
    (folder / "logs").mkdir(parents=True)
    recipe = dense_recipe(tmp_path)
    for name in ("recipe.toml", "submitted.toml"):
        (folder / name).write_text(dump_recipe(recipe))
    (folder / "job.sh").write_text("#!/bin/bash\n")
    (folder / "jobs.txt").write_text("11\n12\n")
    return folder
