"""A model's shape from its folder and from the facts that ship; where they part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from launch.models.facts import (
    ModelFactsError,
    facts_file,
    facts_shape,
    known_models,
    shape_for,
    stop_tokens,
)
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.places import configs_folder
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.rope_config import Llama3Rope, YarnRope

LAB = configs_folder() / "embedded" / "lab.toml"
NAME = "Qwen3-4B-Thinking-2507"


def recipe(**model: Any) -> Recipe:
    asked = load_recipe(LAB, []).recipe
    return asked.model_copy(update={"model": asked.model.model_copy(update=model)})


def folder_with(path: Path, config: dict[str, Any]) -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    return path


def config_of(name: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(facts_file(name).read_text())["config"]
    return config


@pytest.mark.parametrize("name", known_models())
def test_every_file_of_facts_reads_and_names_its_source(name: str) -> None:
    content = json.loads(facts_file(name).read_text())
    assert set(content) == {"source", "config", "stop_token_ids"}
    assert name in content["source"]
    shape = facts_shape(name)
    assert shape.num_heads % shape.num_kv_heads == 0
    assert all(0 <= token < shape.vocab_size for token in content["stop_token_ids"])


def test_rope_of_the_recipe_models() -> None:
    bases = {name: facts_shape(name).rope_theta for name in known_models()}
    assert bases[NAME] == 5e6
    assert bases["Qwen3-30B-A3B-Thinking-2507"] == bases["Qwen3-30B-A3B-Instruct-2507"] == 1e7
    assert bases["DeepSeek-R1-0528-Qwen3-8B"] == bases["Qwen3-14B"] == 1e6
    scalings = {name: facts_shape(name).rope_scaling for name in known_models()}
    assert scalings.pop("DeepSeek-R1-0528-Qwen3-8B") == YarnRope(
        4.0, 32768, attn_factor=0.8782488562869419
    )
    assert scalings.pop("Llama-3.1-8B-Instruct") == Llama3Rope(8.0, 1.0, 4.0, 8192)
    assert set(scalings.values()) == {None}


def test_without_a_folder_the_facts_are_used() -> None:
    assert shape_for(recipe(path="/nowhere", facts=NAME)) == facts_shape(NAME)
    with pytest.raises(ModelFactsError, match=r"/nowhere.*model\.facts is not set.*Qwen3-14B"):
        shape_for(recipe(path="/nowhere"))


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(ModelFactsError, match="did you mean 'Qwen3-4B-Thinking-2507'"):
        facts_shape("Qwen3-4B-Thinkin-2507")


def test_the_folder_wins_and_a_difference_names_both_values(tmp_path: Path) -> None:
    config = config_of(NAME)
    folder = folder_with(tmp_path / "model", config | {"num_hidden_layers": 35})
    assert shape_for(recipe(path=str(folder))).num_layers == 35
    with pytest.raises(ModelFactsError, match=r"num_layers: config\.json says 35, .*say 36"):
        shape_for(recipe(path=str(folder), facts=NAME))


def test_a_hidden_rope_base_that_differs_is_a_difference(tmp_path: Path) -> None:
    config = config_of(NAME)
    del config["rope_theta"]
    same = config | {"rope_parameters": {"rope_type": "default", "rope_theta": 5e6}}
    asked = recipe(path=str(folder_with(tmp_path / "model", same)), facts=NAME)
    assert shape_for(asked) == facts_shape(NAME)
    other = config | {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4}}
    folder_with(tmp_path / "model", other)
    with pytest.raises(ModelFactsError, match=r"rope_theta: config\.json says 10000\.0, .*5000000"):
        shape_for(asked)


def test_a_folder_without_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFactsError, match=rf"holds no config\.json; name the folder of {NAME}"):
        shape_for(recipe(path=str(tmp_path), facts=NAME))
    with pytest.raises(ModelFactsError, match=r"holds no config\.json; name a Hugging Face"):
        shape_for(recipe(path=str(tmp_path)))


def test_a_config_that_cannot_be_read_is_explained(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "model", {"architectures": ["GemmaForCausalLM"]})
    with pytest.raises(ModelFactsError, match=r"config\.json: architectures"):
        shape_for(recipe(path=str(folder)))
    (folder / "config.json").write_text("{not json")
    with pytest.raises(ModelFactsError, match=r"config\.json is not JSON"):
        shape_for(recipe(path=str(folder)))


def test_the_recipes_rope_scaling_replaces_the_configs(tmp_path: Path) -> None:
    name = "DeepSeek-R1-0528-Qwen3-8B"
    plain = {"rope_type": "default"}
    assert shape_for(recipe(path="/nowhere", facts=name, rope_scaling=plain)).rope_scaling is None
    # A folder that was already changed to what the recipe asks for is no difference.
    folder = folder_with(tmp_path / "model", config_of(name) | {"rope_scaling": None})
    asked = recipe(path=str(folder), facts=name, rope_scaling=plain)
    assert shape_for(asked).rope_scaling is None
    with pytest.raises(ModelFactsError, match=r"model\.rope_scaling: rope_type = 'linear'"):
        shape_for(recipe(path="/nowhere", facts=name, rope_scaling={"rope_type": "linear"}))


def test_dual_chunk_attention_is_no_difference(tmp_path: Path) -> None:
    name = "Qwen2.5-7B-Instruct-1M"
    config = config_of(name) | {"dual_chunk_attention_config": {"chunk_size": 262144}}
    asked = recipe(path=str(folder_with(tmp_path / "model", config)), facts=name)
    assert shape_for(asked).dual_chunk


def test_builtin_models_have_a_shape() -> None:
    assert shape_for(recipe(path="builtin:lab-hs")).num_layers == 2
    assert shape_for(recipe(path="builtin:smollm2")) == facts_shape("SmolLM2-135M-Instruct")
    with pytest.raises(ModelFactsError, match="'lab-hx'"):
        shape_for(recipe(path="builtin:lab-hx"))


def test_stop_tokens_of_recipe_folder_and_facts(tmp_path: Path) -> None:
    folder = folder_with(tmp_path / "model", {"eos_token_id": 7})
    assert stop_tokens(recipe(path=str(folder), stop_token_ids=[3, 4]).model) == [3, 4]
    assert stop_tokens(recipe(path=str(folder)).model) == [7]
    (folder / "generation_config.json").write_text('{"eos_token_id": [8, 9]}')
    assert stop_tokens(recipe(path=str(folder)).model) == [8, 9]
    assert stop_tokens(recipe(path="/nowhere", facts=NAME).model) == [151645, 151643]
    assert stop_tokens(recipe(path="/nowhere").model) == []
