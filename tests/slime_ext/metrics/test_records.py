"""Records: appended only, steps done again are marked, a line cut by a crash does no harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from slime_ext.metrics.records import Records, last_rows, read_rollouts, read_rows


def test_a_step_done_again_is_marked_and_read_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Records(tmp_path)
    for step in range(3):
        first.write("train", step, {"loss": float(step)})
    monkeypatch.setenv("LONGRL_ATTEMPT", "2")
    second = Records(tmp_path)
    second.write("train", 2, {"loss": 20.0})
    second.write("train", 3, {"loss": 30.0})
    rows = read_rows(tmp_path / "metrics" / "train.jsonl")
    assert [(r["step"], r["attempt"], r.get("again", False)) for r in rows] == [
        (0, 1, False),
        (1, 1, False),
        (2, 1, False),
        (2, 2, True),
        (3, 2, False),
    ]
    assert [row["loss"] for row in last_rows(tmp_path / "metrics" / "train.jsonl").values()] == [
        0.0,
        1.0,
        20.0,
        30.0,
    ]


def test_a_line_cut_by_a_crash_is_ignored_and_then_removed(tmp_path: Path) -> None:
    Records(tmp_path).write("train", 0, {"loss": 1.0})
    path = tmp_path / "metrics" / "train.jsonl"
    with path.open("a") as file:
        file.write('{"step": 1, "lo')
    assert [row["step"] for row in read_rows(path)] == [0]
    Records(tmp_path).write("train", 1, {"loss": 2.0})
    assert [row["loss"] for row in read_rows(path)] == [1.0, 2.0]


def test_rollouts_are_written_compressed_and_replaced(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.rollouts(4, [{"response": "alt"}])
    records.rollouts(4, [{"response": "neu"}, {"response": "ü"}])
    path = tmp_path / "rollouts" / "step_4.jsonl.zst"
    assert [row["response"] for row in read_rollouts(path)] == ["neu", "ü"]
    assert [p.name for p in path.parent.iterdir()] == [path.name]
