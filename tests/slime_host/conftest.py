"""Tests that run the real slime: skipped as a whole where `SLIME_DIR` names no checkout.

One design choice: one lab run and one engine of ours serve all tests of a session; what a test
changes in them it makes for itself.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slime_ext.metrics.run_folder import RunFolder

NO_SLIME = "needs a slime checkout: make test-slime SLIME_DIR=path/to/slime"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave the folder out where slime cannot be imported; test_skipped.py then says why."""
    have_slime = "SLIME_DIR" in os.environ and importlib.util.find_spec("slime") is not None
    named = collection_path.name.startswith("test_")
    return (named and (collection_path.name == "test_skipped.py") == have_slime) or None


@pytest.fixture(scope="session", autouse=True)
def placeholders() -> None:
    """The packages that slime imports and that cannot be here."""
    from tests.slime_host import stubs

    if "SLIME_DIR" in os.environ:
        stubs.install()


@pytest.fixture(scope="session")
def slime_dir() -> Path:
    return Path(os.environ["SLIME_DIR"]).resolve()


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="session")
def run(runs: Path) -> RunFolder:
    """A prepared lab run: 3 prompts of 4 samples, 40 training rows, 6 for evaluation."""
    from tests.slime_host.lab import lab_run

    return lab_run(runs)


@pytest.fixture(scope="session")
def engine(run: RunFolder, runs: Path) -> Iterator[str]:
    """Address of our own engine serving the lab model."""
    from slime_ext.embedded.engine.process import EngineProcess
    from slime_ext.rollout.runtime import load_runtime

    model = Path(load_runtime(run.recipe).recipe.model.path)
    with EngineProcess(model, batch=32, log=runs / "engine.log") as process:
        yield process.url


@pytest.fixture(scope="session")
def ray() -> Iterator[Any]:
    """A Ray of our own whose workers have the placeholders too, and one pretended GPU."""
    import ray

    ray.init(
        # Never a cluster that another process left its address of.
        address="local",
        num_cpus=4,
        num_gpus=1,
        include_dashboard=False,
        runtime_env={"worker_process_setup_hook": "tests.slime_host.stubs.install"},
    )
    yield ray
    ray.shutdown()


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is logged through slime, by us and by itself: one dictionary a call."""
    calls: list[dict[str, Any]] = []
    new = importlib.util.find_spec("slime.observability") is not None
    module = "slime.observability.logging_utils" if new else "slime.utils.logging_utils"
    monkeypatch.setattr(f"{module}.log", lambda args, metrics, step_key: calls.append(metrics))
    return calls
