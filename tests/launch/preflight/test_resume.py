"""Runs that would start over in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from launch.preflight.context import Context
from launch.preflight.finding import Finding
from launch.preflight.resume import MARKER, check_resume
from slime_ext.metrics.run_folder import write_recipe
from tests.fakes.torch_dist import write_checkpoint
from tests.launch.preflight.conftest import LAB_MODEL, MakeContext, named


@pytest.fixture
def context(make: MakeContext) -> Context:
    made = make()
    made.folder.checkpoints.mkdir(parents=True)
    return made


def save(context: Context, iteration: int, *, complete: bool = True, position: bool = True) -> None:
    folder = write_checkpoint(context.folder.checkpoints, iteration, position)
    if not complete:
        next(folder.glob("*.distcp")).unlink()


def mark(context: Context, text: str) -> None:
    (context.folder.checkpoints / MARKER).write_text(text)


def check(context: Context) -> list[Finding]:
    return check_resume(context.recipe, context)


def test_a_new_run(make: MakeContext) -> None:
    context = make()
    assert named(check(context), "run").status == "pass"


def test_no_checkpoint_yet(context: Context) -> None:
    assert named(check(context), "run").status == "pass"


def test_a_whole_checkpoint_and_its_marker(context: Context) -> None:
    save(context, 20)
    save(context, 40)
    mark(context, "40\n")
    findings = check(context)
    assert {one.status for one in findings} == {"pass"}
    assert "iter_0000040" in named(findings, "marker").message


def test_checkpoints_without_marker_name_the_newest_complete_one(context: Context) -> None:
    save(context, 20)
    save(context, 40)
    save(context, 60, complete=False)
    finding = named(check(context), "marker")
    assert finding.status == "fail"
    assert "start over" in finding.message
    assert "echo 40 >" in finding.remedy
    assert MARKER in finding.remedy


@pytest.mark.parametrize("text", ["", "soon", "2 0", "-1"])
def test_a_marker_without_a_number_is_none(context: Context, text: str) -> None:
    save(context, 20)
    mark(context, text)
    assert named(check(context), "marker").status == "fail"


@pytest.mark.parametrize(
    ("complete", "said"), [(False, "incomplete (1 of 1 files"), (None, "is gone")]
)
def test_a_marker_that_leads_nowhere(context: Context, complete: bool | None, said: str) -> None:
    save(context, 20)
    if complete is not None:
        save(context, 40, complete=complete)
    mark(context, "40")
    finding = named(check(context), "marker")
    assert finding.status == "fail"
    assert said in finding.message
    assert "echo 20 >" in finding.remedy


def test_nothing_complete_leaves_only_a_fresh_start(context: Context) -> None:
    save(context, 20, complete=False)
    assert "--fresh" in named(check(context), "marker").remedy


def test_a_newer_checkpoint_than_the_marker_says(context: Context) -> None:
    save(context, 20)
    save(context, 40)
    mark(context, "20")
    findings = check(context)
    assert named(findings, "marker").status == "pass"
    assert named(findings, "newest").status == "warn"


def test_the_position_in_the_data_is_missed_before_the_run_ends_over_it(context: Context) -> None:
    save(context, 20, position=False)
    mark(context, "20")
    finding = named(check(context), "data position")
    assert finding.status == "fail"
    assert "longrl_data_source_20.json" in finding.message


def test_a_finished_run(context: Context) -> None:
    context.folder.summary.write_text("{}")
    finding = named(check(context), "run")
    assert finding.status == "pass"
    assert "--fresh" in finding.message


def test_a_checkpoint_that_megatron_core_wrote_is_complete(make: MakeContext) -> None:
    from slime_ext.embedded.trainer import Trainer

    context = make(backend="embedded")
    Trainer(LAB_MODEL, context.recipe).save(context.folder.checkpoints)
    assert {one.status for one in check(context)} == {"pass"}
    (context.folder.checkpoints / MARKER).unlink()
    assert "echo 0 >" in named(check(context), "marker").remedy


def test_a_run_goes_on_with_its_own_recipe_only(make: MakeContext) -> None:
    context = make()
    context.folder.path.mkdir(parents=True)
    write_recipe(context.folder, context.recipe)
    assert named(check(context), "recipe").status == "pass"
    longer = make(rollout={"steps": 400})
    assert named(check(longer), "recipe").status == "pass", "how long it runs may change"
    (context.folder.checkpoints / "iter_0000000").mkdir(parents=True)
    other = make(optimiser={"lr": 1e-4}, seed=3)
    finding = named(check(other), "recipe")
    assert finding.status == "fail"
    assert [line.split(":")[0].strip() for line in finding.details] == ["optimiser.lr", "seed"]
    assert "--fresh" in finding.remedy


def test_a_recipe_stored_with_absolute_paths_is_the_same(
    make: MakeContext, monkeypatch: pytest.MonkeyPatch, model: Path
) -> None:
    from slime_ext.embedded.builtin import resolve

    monkeypatch.chdir(model.parent)
    context = make(model={"path": model.name}, data={"train": "rows.jsonl"})
    context.folder.path.mkdir(parents=True)
    write_recipe(context.folder, resolve(context.asked, context.folder.path))
    assert named(check(context), "recipe").status == "pass"
