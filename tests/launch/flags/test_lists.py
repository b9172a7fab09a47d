"""The shipped lists equal the long ones they were made from, where those lie beside the project."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from launch.flags.lists import FOLDER, flags_of, host_flags
from launch.flags.without_effect import without_effect

ROOT = Path(__file__).parents[3]
LONG_LISTS = ROOT.parent / "shared" / "slime"
HOSTS = ("v0.3.1", "v0.2.4")


def compact_flags() -> ModuleType:
    path = ROOT / "tests" / "contracts" / "compact_flags.py"
    spec = importlib.util.spec_from_file_location("compact_flags", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(not LONG_LISTS.is_dir(), reason="the long flag lists are not beside the clone")
@pytest.mark.parametrize("version", HOSTS)
def test_the_shipped_list_is_the_long_one_made_compact(version: str) -> None:
    shipped = json.loads((FOLDER / f"{version}.json").read_text())
    assert shipped == compact_flags().compact(LONG_LISTS, version)


@pytest.mark.parametrize("version", HOSTS)
def test_a_flag_is_found_under_each_of_its_names(version: str) -> None:
    flags = flags_of(version)
    assert flags["--sglang-ep-size"] is flags["--sglang-expert-parallel-size"]
    assert flags["--tensor-model-parallel-size"].owner == "megatron"
    assert flags["--rollout-batch-size"].owner == "slime"
    assert flags["--sequence-parallel"].kind == "switch"


def test_flags_that_a_release_took_away_are_known_to_the_other_only() -> None:
    assert "--qkv-format" in flags_of("v0.2.4")
    assert "--qkv-format" not in flags_of("v0.3.1")
    assert "--router-policy" in flags_of("v0.2.4")


@pytest.mark.parametrize("version", HOSTS)
def test_options_that_slime_sets_itself_are_not_offered(version: str) -> None:
    host = host_flags(version)
    assert "--sglang-model-path" in host.not_offered
    assert "--sglang-config" not in host.not_offered


@pytest.mark.parametrize("version", HOSTS)
def test_a_flag_without_effect_is_one_the_host_accepts_and_a_fork_flag_is_not(version: str) -> None:
    known = flags_of(version)
    reasons = without_effect(version)
    assert len(reasons) > 40
    for flag, reason in reasons.items():
        assert (flag in known) == (reason.group != "fork"), flag
        assert reason.where or reason.group == "fork", flag
