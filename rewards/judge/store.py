"""The SQLite file behind the verdict cache: opened, checked, owned by one writing process.

One design choice: the right to write is an advisory lock on FILE.lock that the kernel drops when
its process dies, so that no crash leaves a cache that nobody may write.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SCHEMA_VERSION = 1
APPLICATION_ID = 0x4C52564A
"""Marks a file as a verdict cache ("LRVJ"), so that no other database is written into."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS verdicts (
    key BLOB PRIMARY KEY,
    value REAL NOT NULL CHECK (value BETWEEN 0 AND 1),
    time REAL NOT NULL,
    model TEXT NOT NULL,
    prompt TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL
) WITHOUT ROWID
"""
_INSERT = "INSERT OR IGNORE INTO verdicts VALUES (?, ?, ?, ?, ?, ?, ?)"
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """How a verdict came about. Holds no word of question, answer or reply."""

    model: str
    prompt: str
    """Version of the protocol, e.g. "longrlvr/1"."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    time: float = field(default_factory=time.time)
    """Seconds since 1970."""


Row = tuple[bytes, float, VerdictRecord]


class VerdictStore:
    """One file; `writer` says whether this process may write it."""

    def __init__(self, path: Path) -> None:
        """Open `path` or make it.

        Raises ValueError where it is a database of another kind, OSError or sqlite3.Error where it
        can be neither read nor made. A damaged file, or one of another schema, is set aside by the
        process that owns the lock.
        """
        self.path = path
        self._lock = threading.Lock()
        self._owner = _own(path)
        self.writer = self._owner is not None
        try:
            self._reading = self._open_owned() if self.writer else _connect_read_only(path)
            self._writing = _connect(path) if self.writer else None
            if self._writing is not None:
                # With a write-ahead log NORMAL loses nothing when the process dies; a power cut may
                # cost the last transactions, never the file.
                self._writing.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            self._release()
            raise

    def get(self, key: bytes) -> float | None:
        """The stored value; raises sqlite3.Error where the file cannot be read."""
        with self._lock:
            # fetchall, not fetchone: an unfinished statement keeps a snapshot open, and the log
            # behind it could never be folded into the file.
            rows = self._reading.execute(
                "SELECT value FROM verdicts WHERE key = ?", (key,)
            ).fetchall()
        return float(rows[0][0]) if rows else None

    def write(self, rows: Sequence[Row]) -> None:
        """Add `rows` in one transaction; a key that exists keeps its value. One thread at a time.

        Raises sqlite3.Error (disk full, damaged file); then none of them is stored.
        """
        if self._writing is None:
            raise ValueError(f"{self.path} belongs to another process; check `writer` first")
        with self._writing:
            self._writing.executemany(
                _INSERT,
                (
                    (key, value, r.time, r.model, r.prompt, r.prompt_tokens, r.completion_tokens)
                    for key, value, r in rows
                ),
            )

    def close(self) -> None:
        """Close the file and let another process own it."""
        with self._lock:
            self._reading.close()
            if self._writing is not None:
                self._writing.close()
            self._release()

    def _release(self) -> None:
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None

    def _open_owned(self) -> sqlite3.Connection:
        try:
            return _connect_checked(self.path)
        except _UnusableError as error:
            aside = _set_aside(self.path)
            _log.warning(
                "verdict cache %s %s; it is kept as %s and a new one is begun",
                *(self.path, error, aside),
            )
            return _connect_checked(self.path)


class _UnusableError(Exception):
    """A file to be set aside."""


def _own(path: Path) -> int | None:
    """A descriptor that holds the right to write `path`, or None where somebody else has it."""
    try:
        descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=5.0, check_same_thread=False)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    # A folder that may not be written has no room for the log's index, and nobody writes there.
    how = "mode=ro" if os.access(path.parent, os.W_OK) else "mode=ro&immutable=1"
    return _read_only(path, how)


def _read_only(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}", uri=True, timeout=1.0, check_same_thread=False
    )
    try:
        connection.execute("SELECT key FROM verdicts LIMIT 1").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_checked(path: Path) -> sqlite3.Connection:
    connection = _connect(path)
    try:
        application, version, tables = _identity(connection)
        if application != APPLICATION_ID and tables:
            raise ValueError(
                f"{path} is a database but not a verdict cache; give the cache a file of its own, "
                'e.g. --set outcome.judge.cache="verdicts.sqlite"'
            )
        if tables and version != SCHEMA_VERSION:
            raise _UnusableError(f"has schema {version}, this program reads {SCHEMA_VERSION}")
        (health,) = connection.execute("PRAGMA quick_check(1)").fetchall()[0]
        if health != "ok":
            raise _UnusableError(f"is damaged ({health})")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute(_SCHEMA)
        connection.commit()
    except sqlite3.DatabaseError as error:
        connection.close()
        if getattr(error, "sqlite_errorcode", None) in _BROKEN:
            raise _UnusableError(f"is damaged ({error})") from error
        raise
    except BaseException:
        connection.close()
        raise
    return connection


def _identity(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Application id, schema version, number of tables."""
    asked = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    application, version, tables = (connection.execute(one).fetchall()[0][0] for one in asked)
    return int(application), int(version), int(tables)


def _set_aside(path: Path) -> Path:
    """Rename the file with its log; the new name says when."""
    aside = path.with_name(f"{path.name}.aside-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    for suffix in ("", "-wal", "-shm"):
        part = Path(f"{path}{suffix}")
        if part.exists():
            part.rename(f"{aside}{suffix}")
    return aside
