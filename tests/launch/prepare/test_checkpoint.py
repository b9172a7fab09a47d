"""The torch_dist checkpoint: what is left to do, and the command that does it."""

from __future__ import annotations

import itertools
import shlex
from pathlib import Path

import pytest

from launch.prepare.checkpoint import MARKER, checkpoint_lines, start_lines
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.places import configs_folder
from slime_ext.recipe.schema import Recipe


def recipe(*overrides: str) -> Recipe:
    return load_recipe(configs_folder() / "longtracerl" / "qwen3-4b.toml", overrides).recipe


def test_slime_v031_reads_the_model_folder_itself() -> None:
    assert checkpoint_lines(recipe()) == []


def test_v024_needs_a_folder_to_be_named() -> None:
    [line] = checkpoint_lines(recipe("slime.version=v0.2.4"))
    assert "set model.megatron_checkpoint" in line


def test_the_command_says_the_whole_model(tmp_path: Path) -> None:
    target = tmp_path / "a folder"
    lines = checkpoint_lines(recipe("slime.version=v0.2.4", f"model.megatron_checkpoint={target}"))
    path, *words = shlex.split(lines[1])
    assert path == "PYTHONPATH=/root/Megatron-LM:/root/slime"
    assert words[:2] == ["python3", "/root/slime/tools/convert_hf_to_torch_dist.py"]
    flags = dict(itertools.pairwise(words[2:]))
    assert flags["--num-layers"] == "36"
    assert flags["--rotary-base"] == "5000000"
    assert flags["--hf-checkpoint"] == str(Path("models/Qwen3-4B-Thinking-2507").absolute())
    assert flags["--save"] == str(target)


@pytest.mark.parametrize("version", ["v0.2.4", "v0.3.1"])
def test_a_checkpoint_with_its_marker_is_complete(version: str, tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text("release")
    named = recipe(f"slime.version={version}", f"model.megatron_checkpoint={tmp_path}")
    assert checkpoint_lines(named) == [f"checkpoint: {tmp_path} is complete"]


def test_the_embedded_backend_converts_by_itself() -> None:
    assert checkpoint_lines(recipe("backend=embedded", "slime.version=v0.2.4")) == []


def test_which_way_a_folder_becomes_a_start_is_the_recipes_to_say(tmp_path: Path) -> None:
    folder, target = tmp_path / "model", tmp_path / "start"
    (line,) = start_lines(recipe(), folder, target)
    assert f"reads {folder} itself" in line
    for named in (
        recipe("slime.version=v0.2.4"),
        recipe('model.megatron_checkpoint="elsewhere"'),
    ):
        _, command, then = start_lines(named, folder, target)
        words = shlex.split(command)
        assert words[words.index("--hf-checkpoint") + 1] == str(folder)
        assert words[words.index("--save") + 1] == str(target)
        assert then.endswith(str(target))
