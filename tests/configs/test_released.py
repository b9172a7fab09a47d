"""Our LongTraceRL recipes beside the released scripts: each difference has its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from launch.arguments import slime_arguments
from tests.configs.recipes import load, value
from tests.configs.released import ADDED_FLAGS, DEVIATIONS, RELEASED


@pytest.mark.parametrize("name", RELEASED)
def test_a_recipe_differs_from_its_script_only_where_that_is_listed(name: str) -> None:
    recipe = load(name)
    different = {key for key, said in RELEASED[name].items() if value(recipe, key) != said}
    assert different == set(DEVIATIONS)
    assert all(len(reason) > 20 for reason in DEVIATIONS.values())


@pytest.mark.parametrize("name", RELEASED)
def test_the_model_is_built_as_its_config_says(name: str, tmp_path: Path) -> None:
    added = ADDED_FLAGS.get(name, {})
    words = set(slime_arguments(load(name), tmp_path)["model"])
    assert words & {"--custom-model-provider-path", "--use-rope-scaling"} == set(added)


def test_the_deviations_are_what_they_say() -> None:
    recipe = load("longtracerl/qwen3-4b")
    assert recipe.eval.max_response_tokens is None
    assert recipe.rollout.max_response_tokens == 32000
    assert recipe.engine.request_timeout_s == 4 * 3600
    assert recipe.data.max_prompt_tokens + recipe.rollout.max_response_tokens == 160000
    assert recipe.reward.rubric.matcher == "correct"
