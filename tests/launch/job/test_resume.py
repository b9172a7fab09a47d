"""Which checkpoint a restarted job goes on from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from launch.job.resume import NoPositionError, NothingLeftError, prepare_start
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.positions import Positions
from slime_ext.weights.checkpoints import MARKER, incomplete
from tests.fakes.torch_dist import write_checkpoint
from tests.launch.job.recipes import job_recipe

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of rollouts 1 and 3."""
    root = tmp_path_factory.mktemp("run") / "checkpoints"
    for iteration in (1, 3):
        write_checkpoint(root, iteration)
    (root / MARKER).write_text("3")
    return root


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> RunFolder:
    shutil.copytree(made, tmp_path / "checkpoints")
    return RunFolder(tmp_path)


@pytest.fixture
def recipe() -> Recipe:
    return job_recipe(steps=10)


def marker(folder: RunFolder) -> str:
    return (folder.checkpoints / MARKER).read_text()


def test_the_newest_is_chosen_and_what_remains_is_said(folder: RunFolder, recipe: Recipe) -> None:
    start = prepare_start(recipe, folder)
    assert start.rollout == 4
    assert start.describe() == "starts from checkpoint iter_0000003; 6 of 10 rollouts remain"


def test_an_empty_folder_starts_from_the_base_model(tmp_path: Path, recipe: Recipe) -> None:
    start = prepare_start(recipe, RunFolder(tmp_path))
    assert start.describe() == "starts from the base model; 10 of 10 rollouts remain"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


DAMAGES: dict[str, tuple[Damage, str]] = {
    "no metadata": (lambda at: (at / ".metadata").unlink(), ".metadata is missing or empty"),
    "empty common.pt": (lambda at: (at / "common.pt").write_text(""), "common.pt is missing"),
    "no metadata.json": (lambda at: (at / "metadata.json").unlink(), "metadata.json is missing"),
    "cut metadata": (lambda at: cut(at / ".metadata"), "cut off or damaged"),
    "lost shard": (lambda at: next(at.glob("*.distcp")).unlink(), "missing or cut off"),
    "cut shard": (lambda at: cut(next(at.glob("*.distcp"))), "missing or cut off"),
    "no position": (
        lambda at: Positions(at.parent).file(3).unlink(),
        "the next prompt is unknown",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_newer_one_is_skipped_and_named(
    name: str, folder: RunFolder, recipe: Recipe
) -> None:
    damage, reason = DAMAGES[name]
    damage(folder.checkpoints / "iter_0000003")
    start = prepare_start(recipe, folder)
    assert start.rollout == 2
    said = start.describe().splitlines()
    assert said[0].startswith("skipped checkpoint iter_0000003: ")
    assert reason in said[0]
    assert said[1] == f"{MARKER} said '3' and was put right"
    assert said[2] == "starts from checkpoint iter_0000001; 8 of 10 rollouts remain"
    assert marker(folder) == "1"


@pytest.mark.parametrize("text", [None, "1", "99", "release", "\xff"])
def test_a_wrong_marker_is_put_right(text: str | None, folder: RunFolder, recipe: Recipe) -> None:
    path = folder.checkpoints / MARKER
    path.unlink() if text is None else path.write_text(text)
    start = prepare_start(recipe, folder)
    assert start.rollout == 4
    assert start.marker == (text or "nothing")
    assert marker(folder) == "3"
    assert prepare_start(recipe, folder).marker is None


def test_a_marker_without_any_checkpoint_goes(folder: RunFolder, recipe: Recipe) -> None:
    for one in folder.checkpoints.glob("iter_*"):
        (one / ".metadata").unlink()
    start = prepare_start(recipe, folder)
    assert (start.checkpoint, start.rollout, len(start.skipped)) == (None, 0, 2)
    assert not (folder.checkpoints / MARKER).exists()


def test_whole_checkpoints_without_a_position_are_not_thrown_away(
    folder: RunFolder, recipe: Recipe
) -> None:
    shutil.rmtree(folder.checkpoints / "rollout")
    with pytest.raises(NoPositionError, match=r"iter_0000003.*Bring the file back"):
        prepare_start(recipe, folder)
    assert marker(folder) == "3"


def test_nothing_left_is_an_error(folder: RunFolder) -> None:
    with pytest.raises(NothingLeftError, match=r"all of rollout.steps = 4 rollouts, none remain"):
        prepare_start(job_recipe(steps=4), folder)


def test_folders_of_other_names_are_no_checkpoints(folder: RunFolder, recipe: Recipe) -> None:
    for name in ("iter_new", ".iter_0000009", "best"):
        (folder.checkpoints / name).mkdir()
    assert prepare_start(recipe, folder).skipped == []
    assert incomplete(folder.checkpoints / "best") is not None
