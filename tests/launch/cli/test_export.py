"""`longrl export`: a run as a checked folder, a folder on its own, a run that is followed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
import tyro
from longrl_tools.export.import_hf import import_folder

from launch.cli.export import ExportUsageError, export
from slime_ext.metrics.run_folder import RunFolder, write_recipe
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.places import configs_folder
from slime_ext.weights.names import hf_to_megatron
from slime_ext.weights.shape import read_shape
from tests.fakes.plain_checkpoints import write_plain
from tests.tools.export.folders import edit_json, edit_tensors, make_folder, read_tensors

LAB = configs_folder() / "embedded" / "lab.toml"
PROMPT = "<q> <CHUNK_1> <CHUNK_2>"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with checkpoints of steps 20 and 40, the second without its metadata."""
    root = tmp_path_factory.mktemp("export")
    model = make_folder(root / "model", "qwen3", tied=True, dtype=torch.float32)
    folder = RunFolder(root / "runs" / "mine")
    first = import_folder(model, folder.checkpoints).checkpoint
    for step in (20, 40):
        shutil.copytree(first, folder.checkpoints / f"iter_{step:07d}")
    shutil.rmtree(first)
    (folder.checkpoints / "iter_0000040" / ".metadata").unlink()
    write_recipe(folder, load_recipe(LAB, [f'model.path="{model}"', "name=mine"]).recipe)
    return folder.path


def command(*words: object) -> int:
    code: int = tyro.cli(export, args=[str(word) for word in words])
    return code


def test_a_run_becomes_a_checked_folder(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(run, tmp_path / "out", "--values", "--load", "--prompt", PROMPT) == 0
    said = capsys.readouterr().out
    assert "passed over iter_0000040: .metadata is missing" in said
    assert "bfloat16, 1 file: no fault found" in said
    assert "not checked" not in said
    assert "# mine, step 20" in (tmp_path / "out" / "README.md").read_text()
    assert {one.dtype for one in read_tensors(tmp_path / "out").values()} == {torch.bfloat16}


def test_a_run_is_found_by_its_name(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run.parents[1])
    assert command("mine", tmp_path / "out") == 0
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_a_folder_on_its_own(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shutil.copytree(run.parents[1] / "model", tmp_path / "model")
    assert command("--verify", folder) == 0
    edit_json(folder / "config.json", rope_theta=1.0)
    assert command("--verify", folder) == 1
    assert "config.json: rope_theta is 1, rope_parameters says 1e+06" in capsys.readouterr().out
    assert command("--verify", folder, "--reference", run.parents[1] / "model") == 1


def test_tensors_that_the_family_does_not_have(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = run.parents[1] / "model"
    tensors = hf_to_megatron(read_tensors(model), read_shape(model))
    extra = {"mtp.layers.0.eh_proj.weight": torch.ones(2, 2)}
    checkpoint = write_plain(tmp_path / "iter_0000003", tensors | extra)
    words = (checkpoint, tmp_path / "out", "--reference", model)
    assert command(*words) == 1
    assert "mtp.layers.0.eh_proj.weight" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert command(*words, "--allow-extra") == 0


def test_greedy_tokens_need_a_checkpoint(run: Path, tmp_path: Path) -> None:
    folder, model = tmp_path / "folder", run.parents[1] / "model"
    shutil.copytree(model, folder)
    with pytest.raises(ValueError, match="--checkpoint"):
        command("--verify", folder, "--prompt", PROMPT)
    ask = ("--prompt", PROMPT, "--reference", model)
    checkpoint = run / "checkpoints" / "iter_0000020"
    assert command("--verify", folder, "--prompt", PROMPT, "--checkpoint", run) == 0
    name = "model.layers.0.self_attn.k_proj.weight"
    edit_tensors(folder, {name: read_tensors(folder)[name].flip(0)})
    assert command("--verify", folder, *ask, "--checkpoint", checkpoint) == 1


def test_a_run_that_is_followed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("launch.cli.export.lowest_priority", lambda: None)
    ended = shutil.copytree(run, tmp_path / "run")
    (ended / "summary.json").write_text("{}")
    assert command("--watch", ended) == 0
    assert "iter_0000020 is exported" in capsys.readouterr().out
    assert [path.name for path in (ended / "exports").iterdir()] == ["iter_0000020"]


@pytest.mark.parametrize(
    "words", [(), ("one",), ("one", "two", "three"), ("--verify",), ("--watch", "nowhere")]
)
def test_too_few_or_too_many_folders(words: tuple[str, ...]) -> None:
    with pytest.raises(ExportUsageError):
        command(*words)
