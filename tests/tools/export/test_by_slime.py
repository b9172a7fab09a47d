"""A family that only slime's converter knows: called, completed from the base model, checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from longrl_tools.export.by_slime import ConverterError
from longrl_tools.export.check import Depth, check_folder
from longrl_tools.export.convert import Options, convert

from tests.fakes.hybrid_checkpoints import write_folder, write_hybrid
from tests.tools.export.folders import edit_tensors, read_tensors, write_shards

CONVERTER = """
import json, pathlib, shutil, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
here = pathlib.Path(__file__).parent
(here / "words.json").write_text(json.dumps(words))
shutil.copytree(here / "answer", words["--output-dir"])
sys.exit((here / "fail").exists() and "the converter's last words")
"""
"""Stands for slime's: writes what was put beside it."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The base model's folder, and a checkpoint of it."""
    root = tmp_path_factory.mktemp("hybrid")
    base = write_folder(root / "base")
    return base, write_hybrid(root / "iter_0000003", base)


@pytest.fixture
def slime(tmp_path: Path, made: tuple[Path, Path]) -> Path:
    """A checkout whose converter writes the decoder of the base model, with a wrong total."""
    tools = tmp_path / "slime" / "tools"
    (tools / "answer").mkdir(parents=True)
    (tools / "convert_torch_dist_to_hf.py").write_text(CONVERTER)
    decoder = {n: t for n, t in read_tensors(made[0]).items() if ".language_model." in n}
    write_shards(tools / "answer", decoder, 2)
    index = {"metadata": {"total_size": 1}, "weight_map": dict.fromkeys(decoder, "x")}
    (tools / "answer" / "model.safetensors.index.json").write_text(json.dumps(index))
    return tools.parent


def options(made: tuple[Path, Path], slime: Path | None) -> Options:
    return Options(reference=made[0], slime=slime)


def test_what_it_writes_is_completed_and_whole(
    made: tuple[Path, Path], slime: Path, tmp_path: Path
) -> None:
    base, checkpoint = made
    done = convert(checkpoint, tmp_path / "out", options(made, slime))
    assert "22 beside the decoder from the base model" in done.lines[-1]
    found = check_folder(tmp_path / "out", done.against, Depth(values=True, load=True))
    assert found.faults == []
    before, after = read_tensors(base), read_tensors(tmp_path / "out")
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    words = json.loads((slime / "tools" / "words.json").read_text())
    assert words["--vocab-size"] == "160"
    assert words["--input-dir"] == str(checkpoint)
    assert not (tmp_path / "out.partial").exists()


def test_a_layer_that_the_converter_lost_is_found(
    made: tuple[Path, Path], slime: Path, tmp_path: Path
) -> None:
    name = "model.language_model.layers.2.linear_attn.A_log"
    answer = slime / "tools" / "answer"
    edit_tensors(answer, {name: None})
    done = convert(made[1], tmp_path / "out", options(made, slime))
    found = check_folder(tmp_path / "out", done.against, Depth())
    assert [(one.name, one.problem) for one in found.faults] == [
        (name, "missing; the base model has it"),
        ("all tensors", "169,668 parameters, the config makes 169,672"),
    ]


def test_a_converter_that_fails_leaves_no_folder(
    made: tuple[Path, Path], slime: Path, tmp_path: Path
) -> None:
    (slime / "tools" / "fail").touch()
    with pytest.raises(ConverterError, match="last words"):
        convert(made[1], tmp_path / "out", options(made, slime))
    (slime / "tools" / "fail").unlink()
    for file in (slime / "tools" / "answer").iterdir():
        file.unlink()
    with pytest.raises(ConverterError, match="wrote no tensor"):
        convert(made[1], tmp_path / "out", options(made, slime))
    assert not (tmp_path / "out").exists()


def test_without_slime_the_command_is_said(made: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ConverterError, match="--slime"):
        convert(made[1], tmp_path / "out", options(made, None))
    with pytest.raises(ConverterError, match=r"python3 .*convert_torch_dist_to_hf\.py --input-dir"):
        convert(made[1], tmp_path / "out", options(made, tmp_path / "nowhere"))


def test_a_folder_that_is_there_is_left_alone(
    made: tuple[Path, Path], slime: Path, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").touch()
    with pytest.raises(ConverterError, match="not empty"):
        convert(made[1], tmp_path / "out", options(made, slime))
