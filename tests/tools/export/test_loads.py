"""transformers loads what was exported, and speaks as the training model does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from longrl_tools.export.export import export_checkpoint
from longrl_tools.export.import_hf import import_folder
from longrl_tools.export.loads import NoTrainingModelError, compare_greedy, load
from longrl_tools.export.source import find_source

from slime_ext.embedded.lab.vocabulary import VOCABULARY
from slime_ext.weights.hf_folder import with_both_rope_forms
from tests.fakes.tiny_configs import FAMILIES
from tests.tools.export.folders import edit_json, edit_tensors, make_folder, read_tensors

Folders = Callable[..., Path]
PROMPT = " ".join(VOCABULARY[20:26])


def names(folder: Path) -> dict[str, str]:
    return {fault.name: fault.problem for fault in load(folder).faults}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_loads(made_folders: Folders, family: str) -> None:
    assert names(made_folders(family, False)) == {}


def test_a_tensor_that_transformers_misses(good: Folders) -> None:
    folder = good()
    edit_tensors(folder, {"model.norm.weight": None, "model.extra": torch.ones(2)})
    found = names(folder)
    assert "starts it at random" in found["model.norm.weight"]
    assert "does not want it" in found["model.extra"]


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
def test_a_file_that_transformers_cannot_read(good: Folders, file: str) -> None:
    folder = good()
    (folder / file).write_text("{")
    assert "cannot read it" in names(folder)[file]


def test_more_tokens_than_rows(good: Folders) -> None:
    folder = good()
    half = {
        name: tensor[:5]
        for name, tensor in read_tensors(folder).items()
        if name in ("model.embed_tokens.weight", "lm_head.weight")
    }
    edit_tensors(folder, half)
    edit_json(folder / "config.json", vocab_size=5)
    assert "the embedding 5 rows" in names(folder)["tokenizer.json"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A model in float32, its checkpoint, and the export of that in bfloat16."""
    root = tmp_path_factory.mktemp("greedy")
    folder = make_folder(root / "hf", "qwen3", dtype=torch.float32)
    checkpoint = import_folder(folder, root / "torch_dist").checkpoint
    export_checkpoint(find_source(checkpoint, folder), root / "out")
    return folder, checkpoint, root / "out"


def greedy(folder: Path, base: Path, checkpoint: Path) -> list[str]:
    loaded = load(folder)
    assert loaded.faults == []
    found = compare_greedy(loaded, base, checkpoint, PROMPT, tokens=24, dtype="bfloat16")
    return [fault.problem for fault in found]


def test_the_exported_model_says_what_the_training_model_says(
    exported: tuple[Path, Path, Path],
) -> None:
    base, checkpoint, folder = exported
    assert greedy(folder, base, checkpoint) == []


@pytest.mark.parametrize("damage", ["rope", "heads", "gate", "stale"])
def test_a_model_that_only_looks_like_it(
    exported: tuple[Path, Path, Path], tmp_path: Path, damage: str
) -> None:
    base, checkpoint, whole = exported
    folder = shutil.copytree(whole, tmp_path / "folder")
    tensors = read_tensors(folder)
    if damage == "rope":
        edit_json(folder / "config.json", **with_both_rope_forms({"rope_theta": 10.0}))
    elif damage == "heads":
        name = "model.layers.0.self_attn.q_proj.weight"
        edit_tensors(folder, {name: tensors[name].roll(16, dims=0)})
    elif damage == "gate":
        gate, up = (f"model.layers.0.mlp.{part}_proj.weight" for part in ("gate", "up"))
        edit_tensors(folder, {gate: tensors[up], up: tensors[gate]})
    else:
        edit_tensors(folder, {name: one.roll(1, 0) for name, one in tensors.items()})
    (problem,) = greedy(folder, base, checkpoint)
    assert problem.startswith(("same greedy tokens", "greedy token "))


def test_a_family_the_embedded_backend_does_not_run(made_folders: Folders) -> None:
    folder = made_folders("qwen2", False)
    with pytest.raises(NoTrainingModelError, match="qwen2"):
        list(compare_greedy(load(folder), folder, folder, PROMPT, 1, "bfloat16"))
