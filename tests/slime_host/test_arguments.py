"""The command line made from a recipe, read by slime's own parser: every value arrives."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from unittest import mock

import pytest

from launch.argument_groups.sampling import write_hook_config
from launch.arguments import slime_arguments
from launch.flags.check import split
from launch.flags.lists import flags_of
from slime_ext.embedded.lab.start import builtin_model
from slime_ext.recipe.schema import Recipe
from tests.launch.recipes import dense_recipe
from tests.slime_host.lab import without_fan_out

RENAMED = {
    "--disable-wandb-random-suffix": ("wandb_random_suffix", False),
    "--no-offload-train": ("offload_train", False),
}
"""Switches that are stored under another name."""


@pytest.fixture
def version() -> str:
    return "v0.2.4" if without_fan_out() else "v0.3.1"


@pytest.fixture
def recipe(tmp_path: Path, version: str) -> Recipe:
    made = dense_recipe(
        tmp_path,
        f"slime.version={version}",
        f"model.path={builtin_model('lab-hs')}",
        f"model.megatron_checkpoint={tmp_path}",
        "parallel.tp=2",
        "engine.gpus=2",
        "loss.kl_coef=0.001",
        "performance.offload=false",
        "rollout.filter=flat",
        "extra.slime.use-fault-tolerance=true",
    )
    return made.model_copy(update={"model": made.model.model_copy(update={"facts": None})})


def parsed(recipe: Recipe, run: Path) -> tuple[argparse.Namespace, dict[str, tuple[str, ...]]]:
    from slime.utils.arguments import parse_args

    run.mkdir()
    write_hook_config(run)
    argv = [word for group in slime_arguments(recipe, run).values() for word in group]
    with mock.patch.object(sys, "argv", ["train.py", *argv]):
        return parse_args(), {one.flag: one.values for one in split(argv)}


def test_every_value_arrives_in_slimes_arguments(
    recipe: Recipe, tmp_path: Path, version: str
) -> None:
    run = tmp_path / "run"
    args, given = parsed(recipe, run)
    seen = 0
    for flag, words in given.items():
        name, expected = RENAMED.get(flag, (flag.removeprefix("--").replace("-", "_"), None))
        if not hasattr(args, name):
            # A flag of Megatron-LM or SGLang, of which only placeholders are here.
            assert flags_of(version)[flag].owner in ("megatron", "sglang"), flag
            continue
        seen += 1
        value = getattr(args, name)
        if expected is not None or not words:
            assert value is (True if expected is None else expected), flag
        elif flag not in ("--load", "--eval-prompt-data"):
            values = value if isinstance(value, list) else [value]
            assert [_plain(one) for one in values] == [_plain(word) for word in words], flag
    assert seen > 50
    assert args.longrl_recipe == str(run / "recipe.toml")
    assert args.load == str(tmp_path), "a run without a checkpoint starts from --ref-load"
    assert args.start_rollout_id == 0
    assert [one.name for one in args.eval_datasets] == ["aa-lcr"]
    assert (args.offload_train, args.offload_rollout) == (False, True)
    assert args.rollout_num_gpus == 32


def test_the_shipped_list_knows_every_flag_of_this_slime(version: str) -> None:
    from slime.utils.arguments import get_slime_extra_args_provider

    if importlib.util.find_spec("slime.observability"):
        pytest.skip("this slime is newer than the hosts whose flags are shipped")
    parser = argparse.ArgumentParser(add_help=False)
    get_slime_extra_args_provider(None)(parser)
    shipped = flags_of(version)
    for action in parser._actions:
        for name in action.option_strings:
            assert name in shipped, name
            if shipped[name].owner == "slime":
                assert (shipped[name].kind == "switch") == (action.nargs == 0), name
                assert set(shipped[name].choices) == set(action.choices or ()), name


def _plain(value: object) -> object:
    try:
        return float(str(value))
    except ValueError:
        return str(value)
