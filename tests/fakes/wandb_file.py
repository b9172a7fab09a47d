"""Reader of the files that wandb writes offline.

One design choice: it reads the log's blocks itself, as wandb 0.31.0 brings no reader in Python.
"""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wandb.proto import wandb_internal_pb2


def records(path: Path) -> Iterator[bytes]:
    """Records of a .wandb file: after a 7-byte header, blocks of 32 KiB in LevelDB's log format
    (4 bytes checksum, 2 bytes length, 1 byte type: 1 whole, 2 first, 3 middle, 4 last)."""
    data, place, parts = path.read_bytes(), 7, b""
    while place + 7 <= len(data):
        if 32768 - place % 32768 < 7:
            place += 32768 - place % 32768
            continue
        length, kind = struct.unpack_from("<HB", data, place + 4)
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):
            yield parts
            parts = b""


def present(path: Path) -> list[wandb_internal_pb2.Record]:
    """The whole records that are in the file now."""
    return [wandb_internal_pb2.Record.FromString(data) for data in records(path)]


def complete(path: Path) -> list[wandb_internal_pb2.Record]:
    """All records, once the writer, which outlives `finish` by a moment, has written the last."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = present(path)
        if found and found[-1].WhichOneof("record_type") == "exit":
            return found
        time.sleep(0.05)
    raise AssertionError(f"{path} was never completed")


def offline_files(folder: Path) -> list[Path]:
    """The .wandb files under `folder/wandb`, oldest first (their names hold the time)."""
    return sorted(folder.glob("wandb/offline-run-*/*.wandb"))


def run_ids(found: list[wandb_internal_pb2.Record]) -> set[str]:
    """Ids of the runs that the records are of."""
    return {one.run.run_id for one in found if one.WhichOneof("record_type") == "run"}


def history(found: list[wandb_internal_pb2.Record]) -> list[dict[str, Any]]:
    """Rows of the history, with W&B's own step as `_step`."""
    rows = []
    for record in found:
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            pairs = {i.key or ".".join(i.nested_key): json.loads(i.value_json) for i in items}
            rows.append(pairs | {"_step": record.history.step.num})
    return rows


def config_of(found: list[wandb_internal_pb2.Record]) -> dict[str, Any]:
    """The config that the run was begun with."""
    run = next(one.run for one in found if one.WhichOneof("record_type") == "run")
    return {one.key: json.loads(one.value_json) for one in run.config.update}


def axes(found: list[wandb_internal_pb2.Record]) -> dict[str, str]:
    """What each group of metrics is drawn over: the glob, and the axis."""
    metrics = [one.metric for one in found if one.WhichOneof("record_type") == "metric"]
    return {one.glob_name: one.step_metric for one in metrics if one.glob_name}
