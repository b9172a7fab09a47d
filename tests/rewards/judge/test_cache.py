"""A verdict is paid for once, and nothing a file does ends a run."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rewards.judge import cache as cache_module
from rewards.judge.cache import VerdictCache, open_cache
from rewards.judge.store import APPLICATION_ID, VerdictStore
from rewards.verdicts import no_verdict, verdict
from tests.rewards.judge.cached import RECORD, key, rows_of

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", [None, "verdicts.sqlite"], ids=["memory", "file"])
def test_what_was_put_is_got_at_once(tmp_path: Path, name: str | None) -> None:
    cache = VerdictCache(None if name is None else tmp_path / name)
    cache.put(key(1), verdict(1.0), RECORD)
    cache.put(key(2), verdict(0.0), RECORD)
    assert cache.get(key(1)) == verdict(1.0)
    assert cache.get(key(2)) == verdict(0.0)
    assert cache.get(key(3)) is None
    cache.flush()
    assert cache.get(key(1)) == verdict(1.0)
    cache.close()


def test_verdicts_and_their_records_outlive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "verdicts.sqlite"
    first = VerdictCache(path)
    first.put(key(1), verdict(0.25), RECORD)
    first.close()
    assert rows_of(path) == [(key(1), 0.25, 1.5, "judge-model", "aa_lcr/1", 120, 7)]
    second = VerdictCache(path)
    assert second.get(key(1)) == verdict(0.25)
    second.close()


def test_no_verdict_is_never_kept(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "v.sqlite")
    with pytest.raises(ValueError, match="timeout"):
        cache.put(key(1), no_verdict("timeout"), RECORD)
    cache.close()
    assert rows_of(tmp_path / "v.sqlite") == []


def test_the_thread_writes_without_being_asked(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    cache = VerdictCache(path)
    cache.put(key(1), verdict(1.0), RECORD)
    end = time.monotonic() + 20
    while not rows_of(path) and time.monotonic() < end:
        time.sleep(0.05)
    assert len(rows_of(path)) == 1
    cache.close()


def test_a_killed_process_loses_only_what_was_not_written(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from rewards.judge.cache import VerdictCache\n"
        "from rewards.judge.store import VerdictRecord\n"
        "from rewards.verdicts import verdict\n"
        "cache = VerdictCache(Path(sys.argv[1]))\n"
        "for n in range(100):\n"
        "    cache.put(n.to_bytes(16, 'big'), verdict(1), VerdictRecord('m', 'p'))\n"
        "cache.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, timeout=60)
    assert done.returncode == -signal.SIGKILL
    cache = VerdictCache(path)
    assert cache.writer, "the lock dies with its owner"
    assert all(cache.get(key(n)) == verdict(1.0) for n in range(100))
    cache.close()


def test_the_end_of_a_process_writes_the_rest(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from rewards.judge.cache import VerdictCache\n"
        "from rewards.judge.store import VerdictRecord\n"
        "from rewards.verdicts import verdict\n"
        "VerdictCache(Path(sys.argv[1])).put(b'1' * 16, verdict(1), VerdictRecord('m', 'p'))\n"
    )
    path = tmp_path / "v.sqlite"
    subprocess.run([sys.executable, "-c", code, str(path)], cwd=ROOT, timeout=60, check=True)
    assert len(rows_of(path)) == 1


def test_a_second_process_reads_and_keeps_its_own_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "v.sqlite"
    code = (
        "import sys; from pathlib import Path\n"
        "from rewards.judge.cache import VerdictCache\n"
        "from rewards.judge.store import VerdictRecord\n"
        "from rewards.verdicts import verdict\n"
        "cache = VerdictCache(Path(sys.argv[1]))\n"
        "cache.put((1).to_bytes(16, 'big'), verdict(1), VerdictRecord('m', 'p'))\n"
        "cache.flush(); print('ready', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == "ready"
        cache = VerdictCache(path)
        assert not cache.writer
        assert cache.get(key(1)) == verdict(1.0)
        cache.put(key(2), verdict(0.0), RECORD)
        assert cache.get(key(2)) == verdict(0.0)
        other.communicate("")
    cache.close()
    assert [row[0] for row in rows_of(path)] == [key(1)]
    said = [r.getMessage() for r in caplog.records if "another process" in r.getMessage()]
    assert len(said) == 1
    assert str(path) in said[0]


def test_two_users_in_one_process_share_the_writer(tmp_path: Path) -> None:
    first, second = open_cache(tmp_path / "v.sqlite"), open_cache(tmp_path / "v.sqlite")
    assert first is second
    first.close()
    assert second.writer, "still open for the second user"
    second.close()
    third = open_cache(tmp_path / "v.sqlite")
    assert third is not first
    assert third.writer
    third.close()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"not a database at all, but long enough to be taken for one" * 20,
        lambda data: data[:4096] + bytes(len(data) - 4096),
        lambda data: data[: len(data) // 2],
    ],
    ids=["text", "zeroed", "cut"],
)
def test_a_damaged_file_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "v.sqlite"
    cache = VerdictCache(path)
    for n in range(2000):
        cache.put(key(n), verdict(1.0), RECORD)
    cache.close()
    path.write_bytes(damage(path.read_bytes()))
    damaged = path.read_bytes()
    cache = VerdictCache(path)
    cache.put(key(5000), verdict(1.0), RECORD)
    cache.close()
    assert [row[0] for row in rows_of(path)] == [key(5000)]
    (aside,) = tmp_path.glob("v.sqlite.aside-*")
    assert aside.read_bytes() == damaged
    assert "damaged" in caplog.text
    assert str(aside) in caplog.text


def test_another_schema_is_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "v.sqlite"
    VerdictCache(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    cache = VerdictCache(path)
    assert cache.writer
    cache.close()
    assert len(list(tmp_path.glob("v.sqlite.aside-*"))) == 1
    assert "schema 99" in caplog.text


def test_somebody_elses_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE precious (x)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"outcome\.judge\.cache"):
        VerdictCache(path)
    assert path.read_bytes() == before


def test_a_lock_that_cannot_be_made_leaves_reading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "v.sqlite"
    cache = VerdictCache(path)
    cache.put(key(1), verdict(1.0), RECORD)
    cache.close()
    Path(f"{path}.lock").unlink()
    Path(f"{path}.lock").mkdir()
    cache = VerdictCache(path)
    assert cache.get(key(1)) == verdict(1.0)
    cache.put(key(2), verdict(1.0), RECORD)
    assert cache.get(key(2)) == verdict(1.0)
    cache.close()
    assert len(rows_of(path)) == 1
    assert "in memory" in caplog.text


def test_a_read_only_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.sqlite"
    cache = VerdictCache(path)
    cache.put(key(1), verdict(1.0), RECORD)
    cache.close()
    Path(f"{path}.lock").unlink()
    real_open = os.open

    def no_new_files(target: object, flags: int, *rest: object, **more: object) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied", str(target))
        return real_open(target, flags, *rest, **more)  # type: ignore[arg-type]

    # Not by chmod: root, who runs tests in containers, may write anywhere.
    monkeypatch.setattr(os, "open", no_new_files)
    monkeypatch.setattr(os, "access", lambda *_: False)
    cache = VerdictCache(path)
    assert cache.get(key(1)) == verdict(1.0)
    assert not cache.writer
    cache.close()


def test_a_place_that_cannot_be_used_leaves_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = VerdictCache(tmp_path / "file" / "v.sqlite")
    cache.put(key(1), verdict(1.0), RECORD)
    assert cache.get(key(1)) == verdict(1.0)
    assert cache.path is None
    assert "memory only" in caplog.text
    cache.close()


def test_a_full_disk_loses_nothing_and_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "v.sqlite"
    cache = VerdictCache(path)
    real = VerdictStore.write

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(VerdictStore, "write", full)
    cache.put(key(1), verdict(1.0), RECORD)
    cache.flush()
    cache.flush()
    assert cache.get(key(1)) == verdict(1.0)
    assert caplog.text.count("disk is full") == 1
    monkeypatch.setattr(VerdictStore, "write", real)
    cache.close()
    assert len(rows_of(path)) == 1


def test_memory_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "MEMORY_LIMIT", 3)
    cache = VerdictCache(None)
    for n in range(5):
        cache.put(key(n), verdict(1.0), RECORD)
    assert [n for n in range(5) if cache.get(key(n))] == [2, 3, 4]


def test_threads_put_and_get_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    cache = VerdictCache(path)
    missing: list[int] = []

    def work(part: int) -> None:
        for n in range(part, 2000, 4):
            cache.put(key(n), verdict(n % 2), RECORD)
            if n % 100 == part:
                cache.flush()
            if cache.get(key(n)) != verdict(n % 2):
                missing.append(n)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cache.close()
    assert not missing
    assert [(row[0], row[1]) for row in rows_of(path)] == [(key(n), n % 2) for n in range(2000)]


def test_a_closed_cache_goes_on_in_memory(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "v.sqlite")
    cache.close()
    cache.put(key(1), verdict(1.0), RECORD)
    assert cache.get(key(1)) == verdict(1.0)


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    VerdictCache(tmp_path / "v.sqlite").close()
    connection = sqlite3.connect(tmp_path / "v.sqlite")
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()
