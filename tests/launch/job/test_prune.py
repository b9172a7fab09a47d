"""Which checkpoints stay, which become the best, and what happens when that fails."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launch.job import best, prune
from launch.job.prune import REMOVED
from launch.job.pruner import Pruner
from launch.job.resume import prepare_start
from slime_ext.metrics.evaluated import figures
from slime_ext.metrics.records import Records, read_rows
from slime_ext.metrics.run_folder import RunFolder, write_recipe
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.checkpoints import MARKER, incomplete
from tests.fakes.torch_dist import WEIGHTS, read_checkpoint, write_checkpoint
from tests.launch.job.recipes import job_recipe


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of rollouts 1, 3, 5, 7; the marker names the last."""
    root = tmp_path_factory.mktemp("run") / "checkpoints"
    for iteration in (1, 3, 5, 7):
        write_checkpoint(root, iteration)
    (root / MARKER).write_text("7")
    return root


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> RunFolder:
    shutil.copytree(made, tmp_path / "checkpoints")
    return RunFolder(tmp_path)


def recipe(keep: int = 2, **checkpoint: Any) -> Recipe:
    return job_recipe(
        data={
            "train": "/nowhere/train.jsonl",
            "eval": "/nowhere/eval.jsonl",
            "eval_sets": {"other": "/nowhere/other.jsonl"},
            "max_prompt_tokens": 8000,
        },
        eval={"every": 2},
        checkpoint={"every": 2, "keep": keep, **checkpoint},
    )


def evaluated(folder: RunFolder, **values: float) -> None:
    """Rows of an evaluation: `_3=0.5` is accuracy .5 after rollout 3; the other set says 1 - it."""
    records = Records(folder.path)
    for step, value in values.items():
        for dataset, figure in (("eval", value), ("other", 1 - value)):
            records.write("eval", int(step[1:]), {"reward/outcome": figure}, dataset=dataset)


def whole(folder: RunFolder) -> list[int]:
    names = sorted(one.name for one in folder.checkpoints.glob("iter_*"))
    return [int(name.removeprefix("iter_")) for name in names]


def the_best(folder: RunFolder) -> dict[str, Any]:
    root = folder.checkpoints / "best"
    said: dict[str, Any] = json.loads((root / "best.json").read_text())
    (only,) = root.glob("iter_*")
    assert int(only.name.removeprefix("iter_")) == said["iteration"]
    assert (root / MARKER).read_text() == str(said["iteration"])
    assert read_checkpoint(only) == dict.fromkeys(WEIGHTS, float(said["iteration"]))
    return said


def test_the_last_stay_whole(folder: RunFolder) -> None:
    done = prune.prune(recipe(keep=2), folder)
    assert done.removed == ["iter_0000001", "iter_0000003"]
    assert whole(folder) == [5, 7]
    assert prune.prune(recipe(keep=2), folder).removed == []


def test_the_best_stays_as_weights(folder: RunFolder) -> None:
    evaluated(folder, _1=0.2, _3=0.9, _5=0.5, _7=0.6)
    done = prune.prune(recipe(), folder)
    assert (done.best, done.value) == ("iter_0000003", 0.9)
    assert the_best(folder)["metric"] == "reward/outcome"
    assert whole(folder) == [5, 7]
    assert prune.prune(recipe(), folder).best is None
    evaluated(folder, _7=0.95)
    assert prune.prune(recipe(), folder).best == "iter_0000007"
    assert the_best(folder)["value"] == 0.95
    assert whole(folder) == [5, 7]


def test_a_tie_keeps_the_earlier_one(folder: RunFolder) -> None:
    evaluated(folder, _3=0.9)
    prune.prune(recipe(), folder)
    evaluated(folder, _7=0.9)
    assert prune.prune(recipe(), folder).best is None
    assert the_best(folder)["iteration"] == 3


def test_no_best_where_none_is_wanted_or_known(folder: RunFolder) -> None:
    prune.prune(recipe(), folder)
    evaluated(folder, _2=0.9, _7=float("nan"))
    prune.prune(recipe(), folder)
    evaluated(folder, _7=0.9)
    prune.prune(recipe(keep_best=False), folder)
    prune.prune(recipe(best="reward/unknown"), folder)
    assert not (folder.checkpoints / "best").exists()


def test_step_0_is_the_base_model_unless_every_step_is_evaluated(folder: RunFolder) -> None:
    evaluated(folder, _0=0.3, _1=0.4)
    assert figures(recipe(), folder) == {1: 0.4}
    each = recipe().model_copy(update={"eval": recipe().eval.model_copy(update={"every": 1})})
    assert figures(each, folder) == {0: 0.3, 1: 0.4}


def test_a_step_evaluated_again_counts_once_by_its_last_row(folder: RunFolder) -> None:
    evaluated(folder, _3=0.9)
    evaluated(folder, _3=0.1, _5=0.2)
    assert figures(recipe(), folder) == {3: 0.1, 5: 0.2}


@settings(max_examples=30, deadline=None)
@given(
    damaged=st.sets(st.sampled_from([1, 3, 5, 7])),
    marked=st.sampled_from([None, 1, 3, 5, 7]),
    keep=st.integers(1, 5),
)
def test_what_a_restart_needs_and_what_is_under_way_is_never_touched(
    made: Path,
    tmp_path_factory: pytest.TempPathFactory,
    damaged: set[int],
    marked: int | None,
    keep: int,
) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    shutil.copytree(made, folder.checkpoints)
    marker = folder.checkpoints / MARKER
    marker.unlink() if marked is None else marker.write_text(str(marked))
    for iteration in damaged:
        (folder.checkpoints / f"iter_{iteration:07d}" / ".metadata").unlink()
    before = prepare_start(recipe(), folder).checkpoint
    marker.unlink(missing_ok=True) if marked is None else marker.write_text(str(marked))
    prune.prune(recipe(keep), folder)
    left = whole(folder)
    good = [iteration for iteration in (1, 3, 5, 7) if iteration not in damaged]
    expected = {*good[-keep:], *({marked} - {None})}
    expected |= {iteration for iteration in (1, 3, 5, 7) if not good or iteration > good[-1]}
    assert set(left) == expected
    assert prepare_start(recipe(), folder).checkpoint == before


def test_a_removal_cut_short_leaves_no_half_checkpoint(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path) -> None:
        next(path.iterdir()).unlink()
        raise OSError("interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(prune.shutil, "rmtree", interrupted)
        with pytest.raises(OSError, match="interrupted"):
            prune.prune(recipe(), folder)
    for iteration in whole(folder):
        assert incomplete(folder.checkpoints / f"iter_{iteration:07d}") is None
    assert list(folder.checkpoints.glob(f"{REMOVED}*"))
    prune.prune(recipe(), folder)
    assert not list(folder.checkpoints.glob(f"{REMOVED}*"))
    assert whole(folder) == [5, 7]


def test_a_best_that_cannot_be_copied_stays_whole(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluated(folder, _1=0.3)
    prune.prune(recipe(keep=4), folder)
    evaluated(folder, _3=0.9)

    def full(checkpoint: Path, target: Path) -> int:
        target.mkdir()
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(best, "copy_weights", full)
        done = prune.prune(recipe(), folder)
    assert done.trouble is not None
    assert "No space left" in done.trouble
    assert done.removed == ["iter_0000001"]
    assert whole(folder) == [3, 5, 7]
    assert the_best(folder)["iteration"] == 1
    prune.prune(recipe(), folder)
    assert the_best(folder)["iteration"] == 3
    assert whole(folder) == [5, 7]


def test_pruning_runs_beside_the_program_when_something_is_new(folder: RunFolder) -> None:
    write_recipe(folder, recipe())
    (folder.path / "attempts" / "1" / "logs").mkdir(parents=True)
    evaluated(folder, _1=0.9)
    pruner = Pruner(folder, 1)
    pruner()
    pruner.finish()
    assert whole(folder) == [5, 7]
    assert the_best(folder)["iteration"] == 1
    kinds = [row["kind"] for row in read_rows(folder.path / "events.jsonl")]
    assert kinds == ["pruned", "best"]


def test_trouble_of_pruning_is_an_event_and_no_more(
    folder: RunFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder.path / "attempts" / "1" / "logs").mkdir(parents=True)
    pruner = Pruner(folder, 1)
    pruner.finish()
    (event,) = read_rows(folder.path / "events.jsonl")
    assert event["kind"] == "prune_failed"
    assert "exit code" in event["reason"]
    assert "were not pruned" in capsys.readouterr().out
    # Nowhere to write to: still no exception.
    Pruner(RunFolder(folder.path / "gone"), 1)()
