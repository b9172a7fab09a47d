"""A disk without room for another checkpoint is called full."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from launch.job.disk import full_disk
from tests.fakes.torch_dist import write_checkpoint


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The room that is left; a test may change it."""
    usage = SimpleNamespace(free=10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    return usage


def test_room_for_another_checkpoint_is_no_news(tmp_path: Path, free: SimpleNamespace) -> None:
    assert full_disk(tmp_path / "gone") is None
    assert full_disk(tmp_path) is None
    write_checkpoint(tmp_path, 3)
    assert full_disk(tmp_path) is None


def test_less_room_than_the_last_took_is_a_full_disk(tmp_path: Path, free: SimpleNamespace) -> None:
    taken = sum(path.stat().st_size for path in write_checkpoint(tmp_path, 3).iterdir())
    free.free = taken - 1
    said = full_disk(tmp_path)
    assert said is not None
    assert "is full" in said
    assert "iter_0000003 is whole" in said
    assert "\n" not in said
    free.free = taken
    assert full_disk(tmp_path) is None


def test_a_disk_that_never_took_one(tmp_path: Path, free: SimpleNamespace) -> None:
    free.free = 1000
    assert "no checkpoint was written yet" in (full_disk(tmp_path) or "")
