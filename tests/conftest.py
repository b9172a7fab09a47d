"""Fixtures shared by all tests: the lab recipe as a run folder, and its runtime."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
from hypothesis import settings

from slime_ext.metrics.run_folder import RunFolder, write_recipe
from slime_ext.recipe.load import load_recipe
from slime_ext.rollout.runtime import Runtime, load_runtime

# An example may take long on a shared machine; no test asserts wall time.
settings.register_profile("shared_machine", deadline=None)
settings.load_profile("shared_machine")

ROOT = Path(__file__).parent.parent
LAB = ROOT / "configs" / "embedded" / "lab.toml"


@pytest.fixture
def lab_runtime(tmp_path: Path) -> Callable[..., Runtime]:
    """Make the runtime of the lab recipe with some keys changed, on 24 rows of 4 hops."""

    def make(*overrides: str) -> Runtime:
        from slime_ext.embedded.builtin import resolve, write_data

        small = ["data.options.rows=24", "data.options.eval_rows=6", "rollout.prompts=4"]
        asked = load_recipe(LAB, [*small, *overrides]).recipe
        folder = RunFolder(tmp_path / "run")
        folder.path.mkdir(exist_ok=True)
        resolved = resolve(asked, folder.path)
        write_data(asked, resolved)
        write_recipe(folder, resolved)
        load_runtime.cache_clear()
        return load_runtime(folder.recipe)

    return make
