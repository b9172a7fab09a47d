"""The position in the data after a rollout of slime's own manager, saved or not."""

from __future__ import annotations

from pathlib import Path

from slime_ext.rollout.positions import Positions
from tests.slime_host.lab import lab_run, slime_args
from tests.slime_host.manager import bare_manager, one_rollout


def test_every_rollout_leaves_the_position_to_go_on_from(runs: Path, engine: str) -> None:
    run = lab_run(runs, name="positions")
    manager = bare_manager(slime_args(run, engine))
    drawn = {}
    for rollout in range(3):
        samples, _ = one_rollout(manager, rollout)
        drawn[rollout] = [sample.metadata["id"] for sample in samples]
    positions = Positions(run.checkpoints)
    assert all(positions.file(rollout).is_file() for rollout in range(3))
    for rollout in range(2):
        again = bare_manager(slime_args(run, engine))
        again.load(rollout)
        samples, _ = one_rollout(again, rollout + 1)
        assert [sample.metadata["id"] for sample in samples] == drawn[rollout + 1]
