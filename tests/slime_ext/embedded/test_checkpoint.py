"""Checkpoints: exact resume, layout, and what a failing disk leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from megatron.core.dist_checkpointing.strategies import filesystem_async

from slime_ext.embedded.checkpoint import CheckpointError, has_checkpoint, latest_checkpoint
from slime_ext.embedded.samples import TrainSample
from slime_ext.embedded.trainer import Trainer
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.checkpoints import MARKER

MakeRecipe = Callable[..., Recipe]


def test_resume_continues_exactly(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample], tmp_path: Path
) -> None:
    recipe = make_recipe(optimiser={"lr": 1e-2, "warmup_steps": 10})
    trainer = Trainer(model_folder, recipe)
    for _ in range(3):
        trainer.train([samples[:6], samples[6:]])
    trainer.save(tmp_path / "checkpoints")
    straight = trainer.train([samples])

    resumed = Trainer(model_folder, recipe)
    resumed.load(tmp_path / "checkpoints")
    assert (resumed.step, resumed.updates) == (3, 6)
    again = resumed.train([samples])
    assert again == pytest.approx(straight, abs=1e-6)
    for name, tensor in trainer.hf_state().items():
        torch.testing.assert_close(resumed.hf_state()[name], tensor, rtol=0, atol=1e-7)


def test_a_checkpoint_before_the_first_step_loads(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample], tmp_path: Path
) -> None:
    trainer = Trainer(model_folder, make_recipe())
    trainer.save(tmp_path)
    other = Trainer(model_folder, make_recipe())
    other.train([samples])
    other.load(tmp_path)
    assert (other.step, other.updates) == (0, 0)
    assert other.train([samples]) == pytest.approx(trainer.train([samples]), abs=1e-6)


def test_layout_is_megatrons_and_the_last_few_are_kept(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample], tmp_path: Path
) -> None:
    trainer = Trainer(model_folder, make_recipe(checkpoint={"keep": 2}))
    root = tmp_path / "checkpoints"
    for _ in range(3):
        trainer.train([samples])
        trainer.save(root)
    assert sorted(path.name for path in root.iterdir()) == ["iter_0000002", "iter_0000003", MARKER]
    assert (root / MARKER).read_text() == "3"
    assert latest_checkpoint(root) == root / "iter_0000003"
    common = torch.load(root / "iter_0000003" / "common.pt", weights_only=False)
    assert (common["args"].num_layers, common["args"].vocab_size) == (2, 97)
    assert common["iteration"] == 3
    stored = (root / "iter_0000003" / ".metadata").read_bytes()
    assert b"decoder.layers.self_attention.linear_qkv.layer_norm_weight" in stored


def test_a_lost_marker_is_written_anew_for_the_newest_whole_checkpoint(
    model_folder: Path, make_recipe: MakeRecipe, samples: list[TrainSample], tmp_path: Path
) -> None:
    assert not has_checkpoint(tmp_path / "none")
    trainer = Trainer(model_folder, make_recipe())
    for _ in range(3):
        trainer.train([samples])
        trainer.save(tmp_path)
    (tmp_path / "iter_0000003" / "common.pt").unlink()
    (tmp_path / MARKER).unlink()
    assert has_checkpoint(tmp_path)
    assert latest_checkpoint(tmp_path) == tmp_path / "iter_0000002"


def test_saving_the_same_step_again_replaces_it(
    model_folder: Path, make_recipe: MakeRecipe, tmp_path: Path
) -> None:
    trainer = Trainer(model_folder, make_recipe())
    assert trainer.save(tmp_path / "c") == trainer.save(tmp_path / "c")
    assert len(list((tmp_path / "c").iterdir())) == 2


@pytest.mark.parametrize("stage", ["tensors", "common", "tracker"])
def test_a_full_disk_leaves_the_previous_checkpoint(
    model_folder: Path,
    make_recipe: MakeRecipe,
    samples: list[TrainSample],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stage: str,
) -> None:
    recipe = make_recipe()
    trainer = Trainer(model_folder, recipe)
    trainer.train([samples])
    trainer.save(tmp_path)
    expected = trainer.hf_state()
    trainer.train([samples])

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if stage == "tensors":
            patch.setattr(filesystem_async, "_write_item", full_disk)
        elif stage == "common":
            patch.setattr(torch, "save", full_disk)
        else:
            patch.setattr(Path, "write_text", full_disk)
        with pytest.raises(CheckpointError, match="No space left on device"):
            trainer.save(tmp_path)
    assert not list(tmp_path.glob(".*.tmp"))
    resumed = Trainer(model_folder, recipe)
    resumed.load(tmp_path)
    assert resumed.step == 1
    assert all(torch.equal(expected[n], t) for n, t in resumed.hf_state().items())
    trainer.save(tmp_path)
    assert latest_checkpoint(tmp_path).name == "iter_0000002"


def test_a_checkpoint_of_another_model_and_none_at_all_are_errors(
    model_folder: Path, make_recipe: MakeRecipe, tmp_path: Path
) -> None:
    trainer = Trainer(model_folder, make_recipe())
    with pytest.raises(FileNotFoundError, match="no checkpoint to resume from"):
        trainer.load(tmp_path)
    trainer.save(tmp_path)
    trainer.shape = replace(trainer.shape, rope_theta=5.0)
    with pytest.raises(CheckpointError, match="rotary_base"):
        trainer.load(tmp_path)
    (tmp_path / MARKER).write_text("7")
    with pytest.raises(FileNotFoundError, match="iter_0000007"):
        trainer.load(tmp_path)
