"""Following a run: each whole checkpoint once, or the best alone; half-written ones wait."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from longrl_tools.export.watch import BEST, Watch

from slime_ext.metrics.records import Records
from slime_ext.metrics.run_folder import RunFolder, write_recipe
from slime_ext.recipe.load import load_recipe
from slime_ext.weights.torch_dist import METADATA
from tests.fakes.torch_dist import write_checkpoint

LAB = Path(__file__).parents[3] / "configs" / "embedded" / "lab.toml"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("made"), 0)


class Run:
    """A run whose checkpoints appear when a test says so; exports are folders with a note."""

    def __init__(self, path: Path, template: Path) -> None:
        self.folder = RunFolder(path / "run")
        self.folder.checkpoints.mkdir(parents=True)
        self.template = template
        self.out = path / "out"
        self.exported: list[str] = []
        write_recipe(self.folder, load_recipe(LAB, ["rollout.steps=60"]).recipe)

    def add(self, iteration: int) -> Path:
        return Path(
            shutil.copytree(self.template, self.folder.checkpoints / f"iter_{iteration:07d}")
        )

    def evaluate(self, iteration: int, value: float) -> None:
        metrics = {"reward/outcome": value}
        Records(self.folder.path).write("eval", iteration, metrics, dataset="eval")

    def export(self, checkpoint: Path, target: Path) -> None:
        self.exported.append(checkpoint.name)
        target.mkdir(parents=True)

    def watch(self, best: str | None = None) -> Watch:
        return Watch(self.folder, self.out, self.export, best)

    def there(self) -> list[str]:
        return sorted(path.name for path in self.out.glob("iter_*"))


@pytest.fixture
def run(tmp_path: Path, template: Path) -> Run:
    return Run(tmp_path, template)


def test_each_checkpoint_is_exported_once(run: Run) -> None:
    for iteration in (20, 40):
        run.add(iteration)
    said = list(run.watch().look())
    assert [line.split()[0] for line in said] == ["iter_0000020", "iter_0000040"]
    assert list(run.watch().look()) == []
    run.add(60)
    assert len(list(run.watch().look())) == 1
    assert run.exported == run.there()


@pytest.mark.parametrize("missing", [METADATA, "common.pt", "__0_0.distcp"])
def test_a_half_written_checkpoint_waits(run: Run, missing: str) -> None:
    checkpoint = run.add(20)
    (checkpoint / missing).rename(checkpoint / "later")
    assert list(run.watch().look()) == []
    (checkpoint / "later").rename(checkpoint / missing)
    assert len(list(run.watch().look())) == 1


def test_it_ends_with_the_run_and_misses_nothing(run: Run) -> None:
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        run.add(20 * len(looks))
        if len(looks) == 2:
            run.folder.summary.write_text("{}")

    list(run.watch().follow(7.0, sleep))
    assert looks == [7.0, 7.0]
    assert run.there() == ["iter_0000020", "iter_0000040"]


def test_a_run_without_summary_ends_with_its_last_step(run: Run) -> None:
    watch = run.watch()
    run.add(59)
    assert not watch.ended()
    write_recipe(run.folder, load_recipe(LAB, ["rollout.steps=60", 'backend="slime"']).recipe)
    assert watch.ended()
    write_recipe(run.folder, load_recipe(LAB, ["rollout.steps=60"]).recipe)
    run.add(60)
    assert watch.ended()


def test_only_the_best_is_kept(run: Run) -> None:
    watch = run.watch("reward/outcome")
    for iteration in (20, 40, 60):
        run.add(iteration)
    assert list(watch.look()) == []
    run.evaluate(20, 0.5)
    assert "reward/outcome = 0.5" in list(watch.look())[1]
    run.evaluate(40, 0.4)
    assert list(watch.look()) == []
    run.evaluate(60, 0.75)
    list(watch.look())
    assert run.there() == ["iter_0000060"]
    said = json.loads((run.out / BEST).read_text())
    assert said == {"checkpoint": "iter_0000060", "metric": "reward/outcome", "value": 0.75}
    assert list(run.watch("reward/outcome").look()) == []


def test_a_best_whose_note_was_not_written_is_noted_later(run: Run) -> None:
    run.add(20)
    run.evaluate(20, 0.5)
    (run.out / "iter_0000020").mkdir(parents=True)
    list(run.watch("reward/outcome").look())
    assert run.exported == []
    assert (run.out / BEST).is_file()


def test_a_checkpoint_that_goes_away_is_passed_over(run: Run) -> None:
    run.add(20)
    run.add(40)

    def pruned(checkpoint: Path, target: Path) -> None:
        if checkpoint.name == "iter_0000020":
            target.with_name("iter_0000020.partial").mkdir(parents=True)
            shutil.rmtree(checkpoint)
            raise FileNotFoundError(checkpoint)
        run.export(checkpoint, target)

    said = list(Watch(run.folder, run.out, pruned).look())
    assert said[0] == "iter_0000020 was removed while it was exported"
    assert [path.name for path in run.out.iterdir()] == ["iter_0000040"]


def test_any_other_trouble_is_told(run: Run) -> None:
    run.add(20)

    def full(checkpoint: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        list(Watch(run.folder, run.out, full).look())


def test_the_lowest_priority() -> None:
    code = (
        "import os, psutil; from longrl_tools.export.watch import lowest_priority; "
        "lowest_priority(); print(os.nice(0), int(psutil.Process().ionice().ioclass))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.split() == ["19", "3"]
