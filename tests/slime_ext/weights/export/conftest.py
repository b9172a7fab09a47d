"""Checkpoints of every family that megatron-core wrote, and one of a plain torch writer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.megatron_checkpoints import case_name, shared


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`made/CASE/{hf,tp1,...}`."""
    return shared(tmp_path_factory)


@pytest.fixture
def case(made: Path) -> Callable[[str, bool, str], tuple[Path, dict[str, Any]]]:
    """The checkpoint and the config of a family, tied or not, in a layout."""

    def find(family: str, tied: bool, layout: str) -> tuple[Path, dict[str, Any]]:
        root = made / case_name(family, tied)
        config: dict[str, Any] = json.loads((root / "hf" / "config.json").read_text())
        return root / layout / "iter_0000007", config

    return find
