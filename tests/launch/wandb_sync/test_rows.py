"""Records as rows for W&B, and what of them is to be sent."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from launch.wandb_sync.cursor import Cursor, pending
from launch.wandb_sync.rows import Row, is_over, wandb_rows
from slime_ext.metrics.records import Records
from tests.launch.wandb_sync.records import make_run


def test_a_step_is_one_row_and_the_last_record_of_it_counts(tmp_path: Path) -> None:
    rows = wandb_rows(make_run(tmp_path))
    assert [row.step for row in rows] == [0, 1, 2, 3, 4]
    assert [row.values["rollout/reward/total"] for row in rows] == [0.1, 1.1, 2.2, 3.2, 4.2]
    assert [row.values["train/loss"] for row in rows] == [-0.1, -1.1, -2.2, -3.2, -4.2]
    assert rows[2].values == {
        "rollout/step": 2,
        "rollout/reward/total": 2.2,
        "rollout/length/mean": 10.0,
        "train/step": 2,
        "train/loss": -2.2,
        "eval/step": 2,
        "eval/eval/reward/outcome": 2.2,
    }
    assert "eval/step" not in rows[1].values
    assert rows[3].attempts == {2}


def test_slimes_timings_keep_their_group_and_what_is_not_a_number_is_left_out(
    tmp_path: Path,
) -> None:
    folder = make_run(tmp_path)
    Records(folder.path).write("train", 5, {"perf/step_time": 3.0, "loss": float("nan")})
    assert wandb_rows(folder)[-1].values == {"train/step": 5, "perf/step_time": 3.0}


def test_a_run_is_over_when_it_has_stopped_and_not_when_it_started_again(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    records = Records(folder.path)
    assert not is_over(folder)
    for kind, over in (("start", False), ("stopped", True), ("start", False), ("finished", True)):
        records.event(kind)
        assert is_over(folder) == over


@given(
    st.lists(st.integers(0, 30), unique=True),
    st.integers(-1, 31),
    st.booleans(),
    st.sets(st.integers(0, 30)),
)
def test_every_row_is_new_sent_or_held(
    steps: list[int], sent: int, over: bool, redone: set[int]
) -> None:
    rows = [Row(step, time=2.0 if step in redone else 1.0) for step in sorted(steps)]
    found = pending(rows, Cursor("id", sent, 1.0), over)
    new = [row.step for row in found.new]
    assert new == [step for step in sorted(steps) if step > sent and step != found.held]
    assert found.changed == [step for step in sorted(steps) if step <= sent and step in redone]
    assert found.held is None or (not over and found.held == max(steps) > sent)
