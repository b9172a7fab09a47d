"""Hugging Face to torch_dist and back: the same bits; and a trainer that starts from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from longrl_tools.export.export import export_checkpoint
from longrl_tools.export.import_hf import ImportFolderError, import_folder
from longrl_tools.export.source import find_source
from longrl_tools.export.verify import Against, verify_folder

from slime_ext.embedded.builtin import resolve
from slime_ext.embedded.checkpoint import CheckpointError
from slime_ext.embedded.trainer import Trainer
from slime_ext.recipe.load import load_recipe
from slime_ext.weights.checkpoints import MARKER, incomplete
from tests.fakes.tiny_configs import FAMILIES
from tests.tools.export.folders import edit_json, edit_tensors, make_folder, read_tensors

LAB = Path(__file__).parents[3] / "configs" / "embedded" / "lab.toml"
Folders = Callable[..., Path]


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("family", FAMILIES)
def test_there_and_back_is_the_same_to_the_bit(
    made_folders: Folders, tmp_path: Path, family: str, tied: bool
) -> None:
    folder = made_folders(family, tied)
    made = import_folder(folder, tmp_path / "start")
    assert incomplete(made.checkpoint) is None
    assert (tmp_path / "start" / MARKER).read_text() == "0"
    export_checkpoint(find_source(tmp_path / "start", folder), tmp_path / "back", shard_bytes=2**16)
    before, after = read_tensors(folder), read_tensors(tmp_path / "back")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    found = verify_folder(tmp_path / "back", Against(folder, "bfloat16"), values=True)
    assert (found.lines()[1:], found.parameters) == ([], made.parameters)
    assert found.files > 1


@pytest.mark.parametrize("kl_coef", [0.0, 0.1])
def test_the_embedded_trainer_starts_from_it(tmp_path: Path, kl_coef: float) -> None:
    start = make_folder(tmp_path / "start", "qwen3", tied=True)
    base = make_folder(tmp_path / "base", "qwen3", tied=True)
    edit_tensors(base, {name: tensor / 2 for name, tensor in read_tensors(base).items()})
    import_folder(start, tmp_path / "torch_dist")
    named = f'model.megatron_checkpoint="{tmp_path / "torch_dist"}"'
    recipe = load_recipe(LAB, [named, f"loss.kl_coef={kl_coef}"]).recipe
    trainer = Trainer(base, recipe)
    expected = read_tensors(start)
    state = trainer.hf_state()
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name].float()) for name in expected)
    if trainer.reference is not None:
        pairs = zip(trainer.model.parameters(), trainer.reference.parameters(), strict=True)
        assert all(torch.equal(*pair) for pair in pairs)
    trainer.save(tmp_path / "checkpoints")


def test_a_run_stores_where_it_started_whatever_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recipe = load_recipe(LAB, ['model.megatron_checkpoint="start"']).recipe
    stored = resolve(recipe, tmp_path / "run").model.megatron_checkpoint
    assert stored == str(tmp_path / "start")


def test_a_start_of_another_model_is_refused(made_folders: Folders, tmp_path: Path) -> None:
    import_folder(made_folders("llama", False), tmp_path / "torch_dist")
    named = f'model.megatron_checkpoint="{tmp_path / "torch_dist"}"'
    with pytest.raises(CheckpointError, match="belongs to another model: qk_layernorm"):
        Trainer(made_folders("qwen3", False), load_recipe(LAB, [named]).recipe)


def test_what_cannot_be_imported(good: Folders, tmp_path: Path) -> None:
    folder = good()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(ImportFolderError, match="not empty"):
        import_folder(folder, tmp_path / "full")
    edit_tensors(folder, {"model.norm.weight": None})
    with pytest.raises(ImportFolderError, match=r"missing: model\.norm\.weight"):
        import_folder(folder, tmp_path / "out")
    edit_json(folder / "config.json", architectures=["GPT2LMHeadModel"])
    with pytest.raises(ImportFolderError, match="not supported"):
        import_folder(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_disk_that_is_full_leaves_no_checkpoint(
    made_folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from megatron.core import dist_checkpointing

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(dist_checkpointing, "save", full)
    with pytest.raises(ImportFolderError, match="No space"):
        import_folder(made_folders("qwen3", False), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
