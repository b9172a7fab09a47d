"""The model group of slime's command line."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import pytest

from launch.flags.check import check_flags
from launch.models.facts import ModelFactsError, facts_shape, known_models
from launch.models.megatron import differences, model_flags
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.places import configs_folder
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.rope_config import Llama3Rope, YarnRope
from slime_ext.weights.shape import MoEShape

LAB = configs_folder() / "embedded" / "lab.toml"
YARN = "DeepSeek-R1-0528-Qwen3-8B"


def recipe(rope_scaling: dict[str, Any] | None = None, **megatron: Any) -> Recipe:
    asked = load_recipe(LAB, []).recipe
    flags = {name.replace("_", "-"): value for name, value in megatron.items()}
    return asked.model_copy(
        update={
            "extra": asked.extra.model_copy(update={"megatron": flags}),
            "model": asked.model.model_copy(update={"rope_scaling": rope_scaling}),
        }
    )


def words(name: str) -> list[str]:
    pairs = model_flags(facts_shape(name), recipe())
    return [word for pair in pairs for word in pair if word is not None]


def table(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word in words(name):
        if word.startswith("--"):
            found[word] = []
        else:
            found[list(found)[-1]].append(word)
    return found


def test_a_dense_tied_model_in_full() -> None:
    assert " ".join(words("Qwen3-4B-Thinking-2507")) == (
        "--num-layers 36 --hidden-size 2560 --ffn-hidden-size 9728 --num-attention-heads 32 "
        "--group-query-attention --num-query-groups 8 --kv-channels 128 --vocab-size 151936 "
        "--make-vocab-size-divisible-by 128 --normalization RMSNorm --norm-epsilon 1e-06 --swiglu "
        "--disable-bias-linear --position-embedding-type rope --rotary-base 5000000 "
        "--rotary-percent 1 --qk-layernorm"
    )


def test_what_each_architecture_adds() -> None:
    qwen2 = table("Qwen2.5-7B-Instruct-1M")
    assert "--add-qkv-bias" in qwen2
    assert "--qk-layernorm" not in qwen2
    assert (qwen2["--rotary-base"], qwen2["--norm-epsilon"]) == (["10000000"], ["1e-05"])
    llama = table("Llama-3.1-8B-Instruct")
    assert "--use-rope-scaling" in llama
    assert "--untie-embeddings-and-output-weights" in llama
    experts = table("Qwen3-30B-A3B-Thinking-2507")
    assert (experts["--num-experts"], experts["--moe-router-topk"]) == (["128"], ["8"])
    assert (experts["--moe-ffn-hidden-size"], experts["--ffn-hidden-size"]) == (["768"], ["6144"])
    assert "--moe-router-pre-softmax" not in experts
    hybrid = table("Qwen3.5-4B")
    assert hybrid["--spec"] == ["slime_plugins.models.qwen3_5", "get_qwen3_5_spec"]
    assert hybrid["--rotary-percent"] == ["0.25"]
    assert {"--attention-output-gate", "--apply-layernorm-1p"} <= set(hybrid)
    assert "--untie-embeddings-and-output-weights" not in hybrid
    assert "--untie-embeddings-and-output-weights" in table("Qwen3.5-9B")


def test_shares_that_are_not_normalised_need_a_softmax_over_all_experts() -> None:
    shape = replace(facts_shape("Qwen3-30B-A3B-Thinking-2507"), moe=MoEShape(8, 2, 64, False))
    assert ("--moe-router-pre-softmax", None) in model_flags(shape, recipe())


@pytest.mark.parametrize("version", ["v0.3.1", "v0.2.4"])
@pytest.mark.parametrize("name", known_models())
def test_every_flag_exists_and_has_effect(name: str, version: str) -> None:
    check_flags(words(name), version)


def test_a_scaling_that_flags_cannot_say_goes_by_the_provider() -> None:
    provider = ["slime_ext.host.model_provider.scaled_rope_model"]
    assert table(YARN)["--custom-model-provider-path"] == provider
    assert "--use-rope-scaling" not in table(YARN)
    llama = facts_shape("Llama-3.1-8B-Instruct")
    other = replace(llama, rope_scaling=Llama3Rope(32.0, 1.0, 4.0, 8192))
    assert ("--custom-model-provider-path", *provider) in model_flags(other, recipe())
    assert ("--use-rope-scaling", None) not in model_flags(other, recipe())
    plain = replace(facts_shape(YARN), rope_scaling=None)
    assert "--custom-model-provider-path" not in dict(model_flags(plain, recipe()))
    module, _, function = provider[0].rpartition(".")
    assert callable(getattr(importlib.import_module(module), function))


def test_scaling_of_a_hybrid_is_refused_with_both_values() -> None:
    shape = replace(facts_shape("Qwen3.5-4B"), rope_scaling=YarnRope(4.0, 262144))
    with pytest.raises(ModelFactsError, match=r"YarnRope\(factor=4\.0.*without scaling"):
        model_flags(shape, recipe())


def test_a_rope_override_of_a_nested_config_is_refused() -> None:
    with pytest.raises(ModelFactsError, match="does not reach the engines"):
        model_flags(facts_shape("Qwen3.5-4B"), recipe(rope_scaling={"rope_type": "default"}))


def test_a_fractional_rope_base_is_refused() -> None:
    shape = replace(facts_shape("Qwen3-14B"), rope_theta=10_000.5)
    with pytest.raises(ModelFactsError, match=r"rope_theta = 10000\.5"):
        model_flags(shape, recipe())


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("num-layers", 35, "--num-layers is 36 for it"),
        ("rotary-base", 1000000, "--rotary-base is 5000000 for it"),
        ("normalization", "LayerNorm", "--normalization is RMSNorm for it"),
        ("qk-layernorm", False, "--qk-layernorm is set for it"),
        ("add-qkv-bias", True, "--add-qkv-bias is not set for it"),
        ("untie-embeddings-and-output-weights", True, "is not set for it"),
        ("num-experts", 8, "--num-experts is not set for it"),
    ],
)
def test_a_pass_through_flag_that_contradicts_the_model(name: str, value: Any, said: str) -> None:
    shape = facts_shape("Qwen3-4B-Thinking-2507")
    (line,) = differences(shape, {name: value})
    assert f"extra.megatron.{name} = {value!r}" in line
    assert said in line
    with pytest.raises(ModelFactsError, match="says otherwise"):
        model_flags(shape, recipe(**{name: value}))


def test_pass_through_flags_that_agree_or_say_nothing_of_the_model_pass() -> None:
    shape = facts_shape("Qwen3-4B-Thinking-2507")
    same = {"num-layers": 36, "norm-epsilon": 1e-6, "qk-layernorm": True, "num-experts": False}
    assert differences(shape, same | {"attention-softmax-in-fp32": True}) == []
    experts = facts_shape("Qwen3-30B-A3B-Thinking-2507")
    assert differences(experts, {"moe-token-dispatcher-type": "flex"}) == []
