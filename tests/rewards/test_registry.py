"""The registry and rewards named by import path."""

import subprocess
import sys
import textwrap

import pytest

from rewards.base import Reward
from rewards.chunk import ChunkConfig, ChunkReward
from rewards.outcome_only import OutcomeReward
from rewards.parsing.families import FAMILIES
from rewards.registry import REWARDS, build_reward, find_reward, register
from rewards.rubric import RubricConfig

QWEN = FAMILIES["qwen3"]


def test_the_packages_rewards_are_found_without_a_list():
    assert {"rubric", "chunk", "outcome"} <= set(REWARDS)
    assert len(REWARDS) == len(list(REWARDS))
    assert all(issubclass(reward, Reward) and reward.Config() for reward in REWARDS.values())


@pytest.mark.parametrize("first", ["rewards.rubric", "rewards.recorder", "rewards.base"])
def test_any_module_may_be_imported_first(first):
    code = f"import {first}; from rewards.registry import REWARDS; print(*sorted(REWARDS))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == sorted(REWARDS)


def test_build_by_name(outcome):
    reward = build_reward("chunk", {"beta": 1.0}, QWEN, outcome)
    assert isinstance(reward, ChunkReward)
    assert reward.config == ChunkConfig(beta=1.0)
    assert build_reward("chunk", ChunkConfig(eta=0.5), QWEN, outcome).config.eta == 0.5


def test_settings_of_another_reward_are_refused(outcome):
    with pytest.raises(TypeError, match="takes ChunkConfig, got RubricConfig"):
        build_reward("chunk", RubricConfig(), QWEN, outcome)


def test_unknown_kind_suggests_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'rubric'"):
        find_reward("rubirc")
    with pytest.raises(ValueError, match=r"my_package\.my_file:MyReward"):
        find_reward("zzzz")


@pytest.fixture
def own_package(tmp_path, monkeypatch):
    (tmp_path / "own_rewards_for_test.py").write_text(
        textwrap.dedent(
            """
            from rewards.base import Reward, RewardConfig
            from rewards.types import Score

            class LengthConfig(RewardConfig):
                limit: int = 5

            class Length(Reward):
                Config = LengthConfig
                async def score(self, task, response):
                    return Score(float(len(response.text) <= self.config.limit))

            helper = 3
            """
        )
    )
    (tmp_path / "broken_rewards_for_test.py").write_text("import a_module_that_is_absent\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_rewards_for_test"
    sys.modules.pop("own_rewards_for_test", None)


def test_own_reward_by_import_path(own_package, outcome):
    reward = build_reward(f"{own_package}:Length", {"limit": 9}, QWEN, outcome)
    assert reward.config.limit == 9
    with pytest.raises(ValueError, match="limti"):
        build_reward(f"{own_package}:Length", {"limti": 9}, QWEN, outcome)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [("Lenght", r"has no 'Lenght'.*'Length'"), ("helper", "not a subclass"), ("", "has no ''")],
)
def test_wrong_attribute(own_package, attribute, message):
    with pytest.raises(ValueError, match=message):
        find_reward(f"{own_package}:{attribute}")


def test_missing_module_says_where_to_look(own_package):
    with pytest.raises(ValueError, match=r"no module 'absent_pkg'.*PYTHONPATH"):
        find_reward("absent_pkg.rewards:Mine")
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_absent"):
        find_reward("broken_rewards_for_test:Mine")


@pytest.mark.parametrize("name", ["kind", "truncated", "options", "two words"])
def test_names_that_cannot_be_keys_are_refused(name):
    with pytest.raises(ValueError, match="cannot be called"):
        register(name)(OutcomeReward)


def test_a_taken_name_is_refused():
    with pytest.raises(ValueError, match=r"taken by rewards\.chunk:ChunkReward"):
        register("chunk")(OutcomeReward)
    assert register("chunk")(ChunkReward) is ChunkReward
