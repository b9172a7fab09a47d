"""The README is true: its example runs, and what it names exists."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from launch.cli.main import COMMANDS, main
from rewards.registry import REWARDS
from slime_ext.recipe.load import load_recipe

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_the_reward_of_your_own_passes_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = re.search(r"```python\n# (my_package/brevity\.py)\n(.*?)```", README, re.DOTALL)
    assert code is not None
    path = tmp_path / code[1]
    path.parent.mkdir()
    path.write_text(code[2])
    monkeypatch.syspath_prepend(str(tmp_path))
    command = re.search(r"longrl (check configs/embedded/lab\.toml --set .*?)\n```", README, re.S)
    assert command is not None
    words = command[1].replace("\\\n", " ").split()
    monkeypatch.setattr(sys, "argv", ["longrl", *words, "--set", "data.options.rows=4"])
    with pytest.raises(SystemExit) as ended:
        main()
    out = capsys.readouterr().out
    assert ended.value.code == 0, out
    assert re.search(r"answer only +1\.000 .*short 1\.00", out)


def test_the_judge_section_is_a_valid_recipe_part(tmp_path: Path) -> None:
    section = re.search(r"```toml\n(\[outcome\].*?)```", README, re.DOTALL)
    assert section is not None
    path = tmp_path / "judged.toml"
    lab = (ROOT / "configs" / "embedded" / "lab.toml").read_text()
    path.write_text(lab + "\n" + section[1])
    judge = load_recipe(path).recipe.outcome.judge
    assert judge.endpoints[0].key_env == "JUDGE_KEY"


def test_commands_rewards_and_targets_that_are_named_exist() -> None:
    assert set(re.findall(r"`longrl ([a-z-]+)", README)) <= set(COMMANDS)
    table = README[README.index("## Rewards") : README.index("## A reward of your own")]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.M)) == set(REWARDS)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"`?make ([a-z-]+)", README)) <= targets


def test_every_path_that_is_named_exists() -> None:
    paths = re.findall(r"`((?:rewards|slime_ext|launch|configs|tests)/[\w/.-]*)`", README)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
