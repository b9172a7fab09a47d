"""A run or a checkpoint becomes a folder that transformers loads and the verifier passes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from longrl_tools.export.export import export_checkpoint
from longrl_tools.export.source import SourceError, find_source
from longrl_tools.export.verify import Against, verify_folder

from slime_ext.recipe.load import dump_recipe
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.export.plan import PlanError
from slime_ext.weights.hf_folder import read_hf
from tests.fakes.megatron_checkpoints import random_weights, write_reference
from tests.fakes.plain_checkpoints import write_live_names
from tests.fakes.tiny_configs import tiny_config

CONFIG = tiny_config("qwen3", True)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with two complete checkpoints and one that is being written."""
    write_reference(tmp_path / "model", CONFIG)
    folder = tmp_path / "run"
    for iteration in (10, 20, 30):
        write_live_names(folder / "checkpoints" / f"iter_{iteration:07d}", CONFIG)
    (folder / "checkpoints" / "iter_0000030" / ".metadata").unlink()
    recipe = Recipe.model_validate(
        {
            "name": "run",
            "model": {"path": str(tmp_path / "model")},
            "data": {"train": "unused", "max_prompt_tokens": 64},
            "rollout": {
                "steps": 30,
                "prompts": 4,
                "group_size": 2,
                "max_response_tokens": 16,
                "context_tokens": 128,
            },
            "reward": {"kind": "chunk"},
            "optimiser": {"lr": 1e-2},
        }
    )
    (folder / "recipe.toml").write_text(dump_recipe(recipe))
    return folder


def test_the_newest_complete_checkpoint_of_a_run_is_exported(run: Path, tmp_path: Path) -> None:
    source = find_source(run)
    assert source.checkpoint.name == "iter_0000020"
    assert source.passed_over == ("iter_0000030: .metadata is missing or empty",)
    report = export_checkpoint(source, tmp_path / "out")
    found, expected = read_hf(tmp_path / "out"), random_weights(CONFIG)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert report.parameters == sum(tensor.numel() for tensor in expected.values())
    assert "run, step 20" in (tmp_path / "out" / "README.md").read_text()
    verified = verify_folder(tmp_path / "out", Against(source.reference), values=True)
    assert [fault for fault in verified.faults if "tokenizer" not in fault.name] == []


def test_transformers_loads_it(run: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    export_checkpoint(find_source(run), tmp_path / "out", shard_bytes=30_000)
    model, info = AutoModelForCausalLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert model.dtype == torch.bfloat16
    assert not any(info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))


def test_a_folder_of_checkpoints_and_a_checkpoint_know_their_run(run: Path) -> None:
    newest = find_source(run / "checkpoints")
    assert (newest.checkpoint, newest.reference) == (
        find_source(run).checkpoint,
        run.parent / "model",
    )
    older = find_source(run / "checkpoints" / "iter_0000010")
    assert (older.checkpoint.name, older.reference) == ("iter_0000010", run.parent / "model")


def test_a_checkpoint_outside_a_run_needs_a_reference(run: Path, tmp_path: Path) -> None:
    alone = shutil.copytree(run / "checkpoints" / "iter_0000010", tmp_path / "a" / "b" / "iter_1")
    with pytest.raises(SourceError, match="--reference"):
        find_source(alone)
    source = find_source(alone, run.parent / "model")
    assert source.run is None
    export_checkpoint(source, tmp_path / "out")
    assert (tmp_path / "out" / "README.md").is_file()


def test_a_run_whose_model_is_gone_needs_a_reference(run: Path) -> None:
    shutil.rmtree(run.parent / "model")
    with pytest.raises(SourceError, match=r"model\.path .* --reference"):
        find_source(run)


def test_a_run_without_a_complete_checkpoint_says_what_each_lacks(run: Path) -> None:
    for number in (10, 20):
        (run / "checkpoints" / f"iter_{number:07d}" / "common.pt").unlink()
    with pytest.raises(SourceError, match=r"iter_0000020: common\.pt.*iter_0000010: common\.pt"):
        find_source(run)


def test_a_folder_without_checkpoints_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="holds no checkpoint"):
        find_source(tmp_path)
    with pytest.raises(FileNotFoundError, match="is no folder"):
        find_source(tmp_path / "nowhere")


@pytest.mark.parametrize("text", [None, "{", '{"architectures": ["GPT2LMHeadModel"]}'])
def test_a_reference_without_a_usable_config_is_refused(
    run: Path, tmp_path: Path, text: str | None
) -> None:
    source = find_source(run)
    config = source.reference / "config.json"
    config.unlink()
    if text is not None:
        config.write_text(text)
    with pytest.raises((SourceError, PlanError), match=r"config\.json"):
        export_checkpoint(source, tmp_path / "out")


def test_the_recipes_rope_scaling_goes_into_the_config(run: Path, tmp_path: Path) -> None:
    recipe = (run / "recipe.toml").read_text()
    scaling = 'rope_scaling = { rope_type = "yarn", factor = 4.0 }'
    scaling = scaling.replace("}", ", original_max_position_embeddings = 512 }")
    (run / "recipe.toml").write_text(recipe.replace("[model]\n", f"[model]\n{scaling}\n"))
    export_checkpoint(find_source(run), tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["rope_parameters"]["rope_type"] == "yarn"
    assert config["rope_parameters"]["factor"] == 4.0
