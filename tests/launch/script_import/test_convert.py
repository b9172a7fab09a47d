"""A script becomes a recipe whose command line says the same, and every flag is accounted for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from launch.arguments import slime_arguments
from launch.cli.main import main
from launch.flags.check import split
from launch.script_import.convert import Imported, convert
from launch.script_import.read import ScriptError, read_script
from slime_ext.recipe.load import load_recipe
from tests.launch.script_import.script import SCRIPT

MACHINE = {"NODES": "1", "HERE": "/here", "ENGINE_GPUS": "8"}


@pytest.fixture
def imported() -> Imported:
    return convert(read_script(SCRIPT, MACHINE), "train", "v0.3.1")


def names(lines: list[tuple[str, str]]) -> set[str]:
    return {said.split()[0] for said, _ in lines}


def test_flags_become_keys_in_the_recipes_units(imported: Imported) -> None:
    recipe = imported.recipe
    assert (recipe.name, recipe.backend) == ("my-run", "slime")
    assert (recipe.rollout.prompts, recipe.rollout.group_size, recipe.rollout.updates) == (16, 8, 2)
    assert recipe.data.max_prompt_tokens == 32000
    assert recipe.data.format == "longtracerl"
    assert (recipe.reward.kind, recipe.reward.rubric.alpha) == ("rubric", 0.25)
    assert recipe.reward.rubric.mode == "positive_only"
    assert recipe.loss.icepop == (0.5, 2.0)
    assert recipe.loss.kl_coef == 0
    assert recipe.optimiser.betas == (0.9, 0.98)
    assert recipe.model.facts == "Qwen3-4B-Thinking-2507"
    assert recipe.model.family == "qwen3"
    assert recipe.engine.config_overrides == {"max_position_embeddings": 41000}
    assert recipe.performance.recompute == "none"
    assert recipe.track.wandb == "online"


def test_every_flag_of_the_script_is_accounted_for_once(imported: Imported) -> None:
    script = {one.flag for one in split(read_script(SCRIPT, MACHINE).argv)}
    parts = [
        names(part)
        for part in (
            imported.keys,
            imported.same,
            imported.no_effect,
            imported.fork,
            imported.extra,
            imported.dropped,
        )
    ]
    assert set().union(*parts) == script


def test_flags_without_effect_and_of_the_fork_are_listed_with_reasons(imported: Imported) -> None:
    none = dict(imported.no_effect)
    assert "for nothing" in none["--use-kl-loss"]
    assert "utils/arguments.py:1963" in none["--rollout-max-context-len 40000"]
    assert "--max-position-embeddings" in names(imported.no_effect)
    fork = dict(imported.fork)
    assert fork["--rubric-reward-ratio 0.25"].endswith("now reward.rubric.alpha")
    assert "--router-balance-abs-threshold" in fork["--sglang-router-balance-abs-threshold 0"]
    assert "--keep-optim-recent" in names(imported.fork)


def test_other_flags_pass_through_and_keys_never_do(imported: Imported) -> None:
    assert imported.recipe.extra.slime == {"use-fault-tolerance": True}
    assert "--wandb-key" in names(imported.dropped)
    assert "WANDB_API_KEY" not in repr(imported.table)


def test_the_recipe_says_to_slime_what_the_script_says(imported: Imported) -> None:
    argv = slime_arguments(imported.recipe, Path("/runs/x"))
    ours = {one.flag: one.values for group in argv.values() for one in split(group)}
    listed = names(imported.no_effect) | names(imported.fork) | names(imported.dropped)
    shared = [one for one in split(read_script(SCRIPT, MACHINE).argv) if one.flag in ours]
    shared = [one for one in shared if "$" not in " ".join(one.values)]
    assert len(shared) > 25
    for one in shared:
        assert one.flag in listed or _same(one.values, ours[one.flag]), one


def _same(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return one == other or [float(word) for word in one] == [float(word) for word in other]


def test_what_the_machine_knows_is_left_for_the_person() -> None:
    found = convert(read_script(SCRIPT, {"HERE": "/here"}), "train", "v0.3.1")
    assert {"cluster.nodes", "engine.gpus", "track.project"} <= names(found.fill_in)
    assert "nodes" not in found.table["cluster"]


def test_a_layout_that_needs_what_the_machine_knows_asks_for_it() -> None:
    text = SCRIPT.replace("TP=2; CP=2", "TP=4; CP=4")
    with pytest.raises(ScriptError, match=r'cluster\.nodes = "\$\{NODES\}"') as raised:
        convert(read_script(text, {"HERE": "/here"}), "train", "v0.3.1")
    assert "--define NODES=VALUE" in str(raised.value)


def test_another_host_knows_other_flags() -> None:
    text = SCRIPT.replace("--use-fault-tolerance", "--qkv-format thd")
    new = convert(read_script(text, MACHINE), "train", "v0.3.1")
    assert "--qkv-format" in names(new.no_effect)
    old = text.replace("--hf-checkpoint $MODEL", "--hf-checkpoint $MODEL\n --ref-load $MODEL-dist")
    assert "--qkv-format" in names(convert(read_script(old, MACHINE), "t", "v0.2.4").extra)


def test_what_a_script_leaves_open_is_asked_for() -> None:
    text = SCRIPT.replace("--rollout-max-context-len ${CONTEXT}", "")
    with pytest.raises(ScriptError, match=r"rollout\.context_tokens[\s\S]*--set"):
        convert(read_script(text, MACHINE), "train", "v0.3.1")
    asked = {"rollout.context_tokens": 40000, "data.max_prompt_tokens": 30000}
    found = convert(read_script(text, MACHINE), "train", "v0.3.1", asked)
    assert found.table["data"]["max_prompt_tokens"] == 30000


def test_the_command_writes_a_recipe_that_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, out = tmp_path / "train.sh", tmp_path / "out.toml"
    script.write_text(SCRIPT)
    words = ["longrl", "import-script", str(script), "--out", str(out)]
    for name, value in MACHINE.items():
        words += ["--define", f"{name}={value}"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    assert "never had effect" in printed
    assert "passed on under [extra]: 1" in printed
    expected = convert(read_script(SCRIPT, MACHINE), "train", "v0.3.1").recipe
    assert load_recipe(out).recipe == expected
