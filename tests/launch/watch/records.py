"""Run folders as a run leaves them, with clocks that the tests choose."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from slime_ext.metrics.records import Records
from slime_ext.metrics.run_folder import RunFolder, start_attempt, write_recipe
from slime_ext.recipe.load import load_recipe

LAB = Path(__file__).parents[3] / "configs" / "embedded" / "lab.toml"
BEGAN = 1_700_000_000.0
STEP_S = 40.0


class Run:
    """A run of the lab recipe with 20 steps."""

    def __init__(self, runs: Path, name: str = "watched") -> None:
        self.folder = RunFolder(runs / name)
        self.folder.path.mkdir(parents=True)
        recipe = load_recipe(LAB, [f"name={name}", "rollout.steps=20"]).recipe
        write_recipe(self.folder, recipe)
        self.records = Records(self.folder.path)

    def attempt(self, begun: float) -> None:
        number = start_attempt(self.folder)
        os.utime(self.folder.path / "attempts" / str(number) / "env.json", (begun, begun))
        self.records = Records(self.folder.path)
        self.records.attempt = number

    def step(self, step: int, when: float, **figures: Any) -> None:
        rollout = {
            "samples": 96.0,
            "reward/total": 0.5 + step / 100,
            "reward/outcome": 0.25,
            "reward/format": 1.0,
            "length/mean": 900.0,
            "length/p95": 1500.0,
            "truncated_share": 0.125,
            "advantage/groups": 12.0,
            "group/zero_advantage": 3.0,
            "seconds": 10.0,
            "time": when,
        }
        self.records.write("rollout", step, rollout | figures)
        train = {"loss": 0.01, "entropy": 0.4, "grad_norm": 0.3, "time": when}
        self.records.write("train", step, train)

    def event(self, kind: str, when: float, **details: Any) -> None:
        self.records.event(kind, **{**details, "time": when})


def restarted_run(runs: Path) -> Run:
    """Five steps, an hour in the queue, and steps 3 to 7 by a second attempt, twice as slow."""
    run = Run(runs)
    run.attempt(BEGAN)
    for step in range(5):
        run.step(step, BEGAN + STEP_S * (step + 1))
    run.attempt(BEGAN + 3600)
    for step in range(3, 8):
        run.step(step, BEGAN + 3600 + 2 * STEP_S * (step - 2))
    return run
