"""Where a cache file goes: network file systems are left for a disk of this machine."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rewards.judge import placement
from rewards.judge.cache import VerdictCache
from rewards.judge.placement import file_system, place
from rewards.verdicts import verdict
from tests.rewards.judge.cached import RECORD, key


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Replace the kernel's mount table; $TMPDIR becomes tmp_path/local."""
    (tmp_path / "local").mkdir()
    monkeypatch.setattr(placement.tempfile, "gettempdir", lambda: str(tmp_path / "local"))
    monkeypatch.setattr(placement, "NODE_LOCAL", ())
    monkeypatch.setattr(placement, "MOUNTS", tmp_path / "mounts")

    def write(table: str) -> None:
        (tmp_path / "mounts").write_text(table.replace("HERE", str(tmp_path)))

    return write


@pytest.mark.parametrize("kind", ["nfs4", "lustre", "gpfs", "beegfs"])
def test_a_network_file_system_is_left_for_a_local_disk(
    tmp_path: Path, mounts: Callable[[str], None], caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    mounts(f"/dev/sda / ext4 rw 0 0\nserver:/home HERE/home {kind} rw 0 0\n")
    path = tmp_path / "home" / "run" / "v.sqlite"
    cache = VerdictCache(path)
    assert cache.path is not None
    assert cache.path.is_relative_to(tmp_path / "local")
    assert str(path) in caplog.text
    assert str(cache.path) in caplog.text
    assert kind in caplog.text
    cache.put(key(1), verdict(1.0), RECORD)
    cache.close()
    assert not path.exists()
    again = VerdictCache(path)
    assert again.get(key(1)) == verdict(1.0), "the same file is found after a restart"
    again.close()


def test_a_cache_on_the_network_is_copied_along(
    tmp_path: Path, mounts: Callable[[str], None]
) -> None:
    mounts("/dev/sda / ext4 rw 0 0\n")
    path = tmp_path / "home" / "v.sqlite"
    cache = VerdictCache(path)
    cache.put(key(1), verdict(1.0), RECORD)
    cache.close()
    mounts("server:/home HERE/home nfs rw 0 0\n")
    moved = VerdictCache(path)
    assert moved.path != path
    assert moved.get(key(1)) == verdict(1.0)
    moved.close()


def test_two_caches_of_one_name_do_not_meet(tmp_path: Path, mounts: Callable[[str], None]) -> None:
    mounts("server:/home HERE/home nfs rw 0 0\n")
    assert place(tmp_path / "home" / "a" / "v") != place(tmp_path / "home" / "b" / "v")


def test_no_local_disk_leaves_memory(
    tmp_path: Path, mounts: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    mounts("server:/ / nfs rw 0 0\n")
    assert place(tmp_path / "v.sqlite") is None
    assert "TMPDIR" in caplog.text


def test_a_folder_that_somebody_else_made_is_not_used(
    tmp_path: Path, mounts: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts("server:/home HERE/home nfs rw 0 0\n")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "local" / f"longrl-{os.getuid()}").symlink_to(tmp_path / "theirs")
    assert place(tmp_path / "home" / "v.sqlite") is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/v", "nfs4"),
        ("/home/me/scratch/v", "xfs"),
        ("/homes/me/v", "ext4"),
        ("/my disk/v", "lustre"),
        ("/twice/v", "tmpfs"),
    ],
)
def test_the_nearest_mount_counts(mounts: Callable[[str], None], path: str, kind: str) -> None:
    mounts(
        "/dev/a / ext4 rw 0 0\ns:/h /home nfs4 rw 0 0\n/dev/b /home/me/scratch xfs rw 0 0\n"
        "l /my\\040disk lustre rw 0 0\nn /twice nfs rw 0 0\nt /twice tmpfs rw 0 0\ngarbage\n"
    )
    assert file_system(Path(path)) == kind


def test_without_a_mount_table_the_path_is_used(
    tmp_path: Path, mounts: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    assert place(tmp_path / "v.sqlite") == (tmp_path / "v.sqlite").resolve()
    assert not caplog.records
