"""Where in the data a run goes on: after any rollout, with prompts that were given back."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from slime_ext import hooks
from slime_ext.rollout.data_source import RecipeDataSource
from slime_ext.rollout.positions import LATEST, Positions
from slime_ext.rollout.runtime import Runtime

PROMPTS = 3


def slime_args(runtime: Runtime, checkpoints: Path) -> Namespace:
    return Namespace(
        longrl_recipe=str(runtime.folder / "recipe.toml"),
        save=str(checkpoints),
        n_samples_per_prompt=runtime.recipe.rollout.group_size,
        rollout_batch_size=runtime.recipe.rollout.prompts,
        rollout_global_dataset=True,
    )


def rows(groups: list[list]) -> list[tuple[int, int]]:
    return [(group[0].group_index, group[0].metadata["row"]) for group in groups]


@pytest.fixture
def runtime(lab_runtime: Callable[..., Runtime]) -> Runtime:
    return lab_runtime()


@given(stop=st.integers(0, 12), back=st.integers(0, 2))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_after_a_stop_at_any_rollout_the_next_prompt_is_the_right_one(
    runtime: Runtime, tmp_path: Path, stop: int, back: int
) -> None:
    args = slime_args(runtime, tmp_path / "checkpoints")
    whole = RecipeDataSource(args)
    expected = []
    for rollout in range(14):
        groups = whole.get_samples(PROMPTS)
        whole.add_samples(groups[:back])
        whole.remember(rollout)
        expected.append(rows(groups))
        if rollout == stop:
            again = RecipeDataSource(args)
            again.load(rollout)
    went_on = []
    for _ in range(stop + 1, 14):
        groups = again.get_samples(PROMPTS)
        again.add_samples(groups[:back])
        went_on.append([row for _, row in rows(groups)])
    assert went_on == [[row for _, row in one] for one in expected[stop + 1 :]]


def test_positions_are_kept_for_checkpoints_and_the_last_rollouts(tmp_path: Path) -> None:
    positions = Positions(tmp_path)
    (tmp_path / "iter_0000002").mkdir()
    for rollout in range(10):
        positions.write(rollout, {"at": rollout})
        positions.forget(rollout)
    kept = [rollout for rollout in range(10) if positions.file(rollout).is_file()]
    assert kept == [2, *range(10 - LATEST, 10)]
    assert positions.read(2) == {"at": 2}
    with pytest.raises(FileNotFoundError, match="next prompt is unknown"):
        positions.read(3)


def test_slime_s_rollouts_are_remembered_by_the_log_hook(runtime: Runtime, tmp_path: Path) -> None:
    told: list[int] = []
    RecipeDataSource(slime_args(runtime, tmp_path))
    assert runtime.after_rollout is not None
    runtime.after_rollout(7)
    assert Positions(tmp_path).file(7).is_file()
    runtime.after_rollout = told.append
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hooks, "require_answers", lambda *_: None)
        hooks.log_rollout(8, slime_args(runtime, tmp_path), [], None, 1.0)
    assert told == [8]


def test_the_embedded_loop_keeps_its_own_positions(
    lab_runtime: Callable[..., Runtime], tmp_path: Path
) -> None:
    runtime = lab_runtime()
    args = slime_args(runtime, tmp_path)
    del args.rollout_global_dataset
    RecipeDataSource(args)
    assert runtime.after_rollout is None
