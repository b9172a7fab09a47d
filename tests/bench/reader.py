"""How fast a JSONL file is indexed, and what opening a large one costs once it is.

Speed is megabytes a second of one core: CPU time, user and system, of one process from a warm page
cache, which other work on the machine does not blur; median of three. Kinds of rows: 500 KB, 2 KB,
and 2 KB with the id last, which must be parsed; `index_mb_per_s` is the slowest kind. Opening (wall
time, imports left out, one row read) runs in a process of its own, whose peak resident size (VmHWM,
imports included) is reported.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from slime_ext.data.store import RowStore

# Quotes, line breaks and letters outside ASCII, as extracted text has them.
TEXT = (
    'The library of \\"Nalanda\\" held many works.\\nIt burned down in the 12\u1d57\u02b0 century. '
)

OPEN = """
import sys, time
from pathlib import Path
from slime_ext.data.store import RowStore
start = time.perf_counter()
store = RowStore(Path(sys.argv[1]))
store.row(len(store) // 2)
seconds = time.perf_counter() - start
with open("/proc/self/status") as lines:
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(seconds, peak / 1024)
"""


def write_rows(path: Path, megabytes: int, row_bytes: int, id_first: bool = True) -> None:
    """A file of about `megabytes` (10^6 bytes) of valid rows."""
    text = TEXT * max(1, row_bytes // len(TEXT.encode()))
    fields = f'"question":"Why?","context":[{{"id":"1","text":"{text}"}}],"answer":"x"'.encode()
    target = megabytes * 1_000_000
    with path.open("wb") as file:
        number = size = 0
        while size < target:
            identity = b'"id":"row-%d"' % number
            parts = (identity, fields) if id_first else (fields, identity)
            size += file.write(b"{" + b",".join(parts) + b"}\n")
            number += 1


def index_speed(path: Path, repeats: int = 3) -> float:
    """Megabytes a second of building the index, the median of `repeats`."""
    place = path.with_name(f"{path.name}.longrl.index.npy")
    path.read_bytes()
    seconds = []
    for _ in range(repeats):
        place.unlink(missing_ok=True)
        start = time.process_time()
        RowStore(path)
        seconds.append(time.process_time() - start)
    return path.stat().st_size / 1e6 / statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=2000, help="size of the large file")
    large = parser.parse_args().megabytes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        speeds = {}
        for name, row_bytes, id_first in (
            ("index_500kb_rows", 500_000, True),
            ("index_2kb_rows", 2_000, True),
            ("index_2kb_rows_id_last", 2_000, False),
        ):
            write_rows(path, min(400, large), row_bytes, id_first)
            speeds[name] = index_speed(path)
            print(f"figure {name}_mb_per_s {speeds[name]:.0f}")
        print(f"figure index_mb_per_s {min(speeds.values()):.0f}")
        write_rows(path, large, 2_000)
        RowStore(path)
        command = [sys.executable, "-c", OPEN, str(path)]
        opened = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, peak = (float(value) for value in opened.stdout.split())
        print(f"figure open_2gb_s {seconds:.4f}")
        print(f"figure open_2gb_rss_mb {peak:.0f}")


if __name__ == "__main__":
    main()
