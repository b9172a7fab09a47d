"""wandb offline: one id over attempts, explicit steps, no secret in the config."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wandb.proto import wandb_internal_pb2

from slime_ext.embedded.tracking import tracked
from slime_ext.host import loggers
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.load import load_recipe

LAB = Path(__file__).parents[3] / "configs" / "embedded" / "lab.toml"


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


def complete(path: Path) -> list[wandb_internal_pb2.Record]:
    """All records, once the writer, which outlives `finish` by a moment, has written the last."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = [wandb_internal_pb2.Record.FromString(data) for data in records(path)]
        if found and found[-1].WhichOneof("record_type") == "exit":
            return found
        time.sleep(0.05)
    raise AssertionError(f"{path} was never completed")


def logged(folder: Path) -> tuple[list[dict[str, Any]], str]:
    """History rows of the newest offline run in `folder`, and its id."""
    newest = max(folder.glob("wandb/offline-run-*"), key=lambda path: path.stat().st_mtime_ns)
    rows, identity = [], ""
    for record in complete(next(newest.glob("*.wandb"))):
        if record.WhichOneof("record_type") == "run":
            identity = record.run.run_id
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            pairs = {i.key or ".".join(i.nested_key): json.loads(i.value_json) for i in items}
            rows.append(pairs | {"step": record.history.step.num})
    return rows, identity


def test_two_attempts_share_an_id_and_keep_their_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0123456789" * 4)
    recipe = load_recipe(LAB, ["track.wandb=offline"]).recipe
    folder = RunFolder(tmp_path)
    identities = []
    for steps in ((0, 1), (1, 2)):
        with tracked(recipe, folder):
            for step in steps:
                loggers.log(None, {"longrl/reward": step / 10}, step)
        rows, identity = logged(tmp_path)
        found = [(row["step"], row["longrl/reward"]) for row in rows if "longrl/reward" in row]
        assert found == [(step, step / 10) for step in steps]
        identities.append(identity)
        time.sleep(1.1)  # wandb names the folder by the second; a restart takes longer than one
    assert identities[0] == identities[1] != ""
    text = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"0123456789" * 4 not in text


def test_nothing_is_written_when_it_is_off(tmp_path: Path) -> None:
    with tracked(load_recipe(LAB).recipe, RunFolder(tmp_path)):
        loggers.log(None, {"longrl/reward": 1.0}, 0)
    assert list(tmp_path.iterdir()) == []
