"""Verdicts that were paid for once: in memory, and in a SQLite file where a path is given.

One design choice: a put only fills a dictionary and a thread writes twice a second, so that no
verdict waits for a disk; a process that is killed loses at most the last second. Nothing a file
does can end a run: a cache that fails becomes a smaller cache, and says so once.
"""

from __future__ import annotations

import atexit
import logging
import os
import sqlite3
import threading
from pathlib import Path

from rewards.judge.placement import place
from rewards.judge.store import VerdictRecord, VerdictStore
from rewards.verdicts import Verdict, verdict

WRITE_EVERY_S = 0.5
MEMORY_LIMIT = 1_000_000
"""Verdicts kept in memory where no file takes them, about 200 bytes each; the oldest go first."""

_log = logging.getLogger(__name__)


class VerdictCache:
    """Decided verdicts by key; safe from any thread. Close it, or let the end of the process."""

    def __init__(self, path: Path | None) -> None:
        """Open the cache at `path`; None keeps it in memory.

        Raises ValueError where `path` is a database of another kind.
        """
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._kept: dict[bytes, tuple[float, VerdictRecord | None]] = {}
        """What no file holds (yet)."""
        self._store = _open(path) if path is not None else None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._said: set[str] = set()
        self._users = 1
        if self._store is not None:
            atexit.register(self._shut)

    @property
    def path(self) -> Path | None:
        """The file in use; None for memory alone."""
        return self._store.path if self._store else None

    @property
    def writer(self) -> bool:
        """Whether new verdicts reach the file."""
        return self._store is not None and self._store.writer

    def get(self, key: bytes) -> Verdict | None:
        """The verdict stored under `key`, or None. A file that cannot be read holds nothing."""
        kept = self._kept.get(key)
        if kept is not None:
            return verdict(kept[0])
        store = self._store
        if store is None:
            return None
        try:
            value = store.get(key)
        except sqlite3.Error as error:
            self._say_once("cannot be read", error)
            return None
        return None if value is None else verdict(value)

    def put(self, key: bytes, decided: Verdict, record: VerdictRecord) -> None:
        """Keep a decided verdict; on disk within a second.

        Raises ValueError for no verdict: a judge that failed once must be asked again.
        """
        if decided.value is None:
            raise ValueError(f"no verdict ({decided.reason}) is not kept; ask the judge again")
        with self._lock:
            # The record is only of use to the file.
            self._kept[key] = (decided.value, record if self.writer else None)
            if len(self._kept) > MEMORY_LIMIT:
                del self._kept[next(iter(self._kept))]
            if self.writer and self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(
                    target=self._write_on, name="verdict-cache", daemon=True
                )
                self._thread.start()

    def flush(self) -> None:
        """Write what is not on disk yet. A failure is logged once and tried again next time."""
        with self._writing:
            store = self._store
            if store is None or not store.writer:
                return
            with self._lock:
                rows = [(key, value, rec) for key, (value, rec) in self._kept.items() if rec]
            if not rows:
                return
            try:
                store.write(rows)
            except sqlite3.Error as error:
                self._say_once("cannot be written", error)
                return
            with self._lock:
                for key, _, _ in rows:
                    self._kept.pop(key, None)

    def close(self) -> None:
        """Write the rest and give the file up once the last user of `open_cache` has closed; the
        cache then lives on in memory."""
        with _opening:
            self._users -= 1
            if self._users > 0:
                return
        self._shut()

    def _shut(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.flush()
        with self._writing:
            store, self._store = self._store, None
            if store is not None:
                store.close()
                atexit.unregister(self._shut)

    def _write_on(self) -> None:
        while not self._closing.wait(WRITE_EVERY_S):
            self.flush()

    def _say_once(self, what: str, error: sqlite3.Error) -> None:
        if what not in self._said:
            self._said.add(what)
            _log.warning(
                "verdict cache %s %s (%s); verdicts are kept in memory meanwhile",
                *(self.path, what, error),
            )


_opening = threading.Lock()
_opened: dict[Path, VerdictCache] = {}


def open_cache(path: Path | None) -> VerdictCache:
    """The cache at `path`, shared by all who open it in this process: two judges of one run would
    otherwise find the file owned by "another" writer. Raises what VerdictCache raises."""
    if path is None:
        return VerdictCache(None)
    key = path.expanduser().resolve()
    with _opening:
        known = _opened.get(key)
        if known is not None and known._users > 0:
            known._users += 1
            return known
        _opened[key] = VerdictCache(path)
        return _opened[key]


def _open(path: Path) -> VerdictStore | None:
    placed = place(path)
    if placed is None:
        return None
    try:
        placed.parent.mkdir(parents=True, exist_ok=True)
        store = VerdictStore(placed)
    except (OSError, sqlite3.Error) as error:
        _log.warning(
            "verdict cache %s cannot be used (%s); verdicts are kept in memory only", placed, error
        )
        return None
    if not store.writer:
        _log.warning(
            "verdict cache %s is written by another process (%s.lock is held or cannot be made); "
            "process %d reads it and keeps its own new verdicts in memory",
            *(placed, placed, os.getpid()),
        )
    return store
