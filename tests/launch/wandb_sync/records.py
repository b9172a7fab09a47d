"""A run folder with records of three attempts, one of them redone from step 2."""

from __future__ import annotations

from pathlib import Path

from slime_ext.metrics.records import Records
from slime_ext.metrics.run_folder import RunFolder, write_recipe
from slime_ext.recipe.load import load_recipe

LAB = Path(__file__).parents[3] / "configs" / "embedded" / "lab.toml"


def write_steps(folder: RunFolder, attempt: int, steps: range) -> None:
    """Records of some steps; every value tells step and attempt."""
    records = Records(folder.path)
    records.attempt = attempt
    for step in steps:
        value = step + attempt / 10
        if step % 2 == 0:
            records.write("eval", step, {"reward/outcome": value}, dataset="eval")
        records.write("rollout", step, {"reward/total": value, "length/mean": 10.0})
        records.write("train", step, {"loss": -value})


def make_run(root: Path, *overrides: str) -> RunFolder:
    """Steps 0 to 3 in attempt 1, 2 to 4 in attempt 2; nothing has ended."""
    folder = RunFolder(root / "lab")
    folder.path.mkdir(parents=True)
    write_recipe(folder, load_recipe(LAB, ["track.wandb=offline", *overrides]).recipe)
    write_steps(folder, 1, range(4))
    write_steps(folder, 2, range(2, 5))
    return folder
