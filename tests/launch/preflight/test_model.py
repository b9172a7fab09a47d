"""Shape against facts, context against the engine's limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launch.models.facts import ModelFactsError
from launch.preflight.model import check_model, engine_limit
from tests.launch.preflight.conftest import MakeContext, named

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}


def test_a_folder_says_what_it_is(make: MakeContext) -> None:
    context = make()
    findings = check_model(context.recipe, context)
    assert {one.status for one in findings} == {"pass"}
    assert "config.json" in named(findings, "shape").message
    assert (
        "takes 320 tokens, 64 of them spare; the model allows 1,024"
        in named(findings, "context").message
    )


def test_facts_stand_in_for_an_absent_folder(make: MakeContext) -> None:
    context = make(offline=True, model={"path": "/no/model", "facts": "Qwen3-4B-Thinking-2507"})
    findings = check_model(context.recipe, context)
    assert "36 layers" in named(findings, "shape").message
    assert "(facts)" in named(findings, "shape").message
    assert (
        "takes 320 tokens, 64 of them spare; the model allows 262,144"
        in named(findings, "context").message
    )


def test_neither_folder_nor_facts(make: MakeContext) -> None:
    context = make(offline=True, model={"path": "/no/model"})
    assert [one.status for one in check_model(context.recipe, context)] == ["skip"]


def test_a_folder_that_is_another_model_names_both_values(make: MakeContext) -> None:
    context = make(model={"facts": "Qwen3-4B-Thinking-2507"})
    with pytest.raises(ModelFactsError, match=r"config\.json says 2, the facts say 36"):
        check_model(context.recipe, context)


def test_a_context_beyond_the_models_own(
    make: MakeContext, edit: Callable[..., None], model: Path
) -> None:
    edit("config.json", max_position_embeddings=300)
    finding = named(check_model(make().recipe, make()), "context")
    assert finding.status == "fail"
    assert "needs 320 tokens" in finding.message
    assert "allows 300" in finding.message
    assert "max_position_embeddings = 320" in finding.remedy
    raised = make(engine={"config_overrides": {"max_position_embeddings": 320}})
    assert named(check_model(raised.recipe, raised), "context").status == "pass"
    embedded = make(backend="embedded")
    assert named(check_model(embedded.recipe, embedded), "context").status == "pass"


def test_an_engine_that_is_given_less_than_the_recipe(make: MakeContext) -> None:
    context = make(engine={"context_tokens": 200})
    finding = named(check_model(context.recipe, context), "context")
    assert finding.status == "fail"
    assert "below rollout.context_tokens = 256" in finding.message


@pytest.mark.parametrize(
    ("scaling", "limit"),
    [
        (None, 1000),
        ({"rope_type": "default", "rope_theta": 1e4}, 1000),
        ({"rope_type": "linear", "factor": 2.0}, 2000),
        (YARN, 1000),
        ({"rope_type": "llama3", "factor": 8.0}, 1000),
        ({"type": "llama3", "factor": 8.0}, 1000),
    ],
)
@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_a_rope_factor_counts_only_without_an_original_length(
    scaling: Any, limit: int, key: str
) -> None:
    assert engine_limit({"max_position_embeddings": 1000, key: scaling}, 7) == limit
    assert engine_limit({key: scaling}, 1000) == limit


def test_rope_scaling_of_the_recipe_replaces_the_configs(
    make: MakeContext, edit: Callable[..., None]
) -> None:
    edit("config.json", max_position_embeddings=128, rope_scaling=None)
    scaled = make(model={"rope_scaling": YARN})
    finding = named(check_model(scaled.recipe, scaled), "context")
    assert finding.status == "fail", "an engine takes no factor where the original length is given"
