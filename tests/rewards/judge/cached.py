"""What the tests of the verdict cache put in, and a look into its file from outside."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from rewards.judge.store import VerdictRecord

RECORD = VerdictRecord("judge-model", "aa_lcr/1", 120, 7, time=1.5)


def key(n: int) -> bytes:
    return n.to_bytes(16, "big")


def rows_of(path: Path) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT * FROM verdicts ORDER BY key").fetchall()
    finally:
        connection.close()
