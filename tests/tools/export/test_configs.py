"""config.json: the same rotation for every reader, the sizes of the base model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from longrl_tools.export.configs import stated_dtype
from longrl_tools.export.verify import Against, verify_folder

from tests.tools.export.folders import edit_json

Folders = Callable[..., Path]
LLAMA = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}
KEYS = (
    *("architectures", "num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"),
    *("head_dim", "num_key_value_heads", "rope_theta", "rope_parameters", "rope_scaling", "dtype"),
    *("tie_word_embeddings", "rms_norm_eps", "text_config", "torch_dtype", "attention_bias"),
)
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.lists(st.text(max_size=3), max_size=2),
    st.dictionaries(st.sampled_from(["rope_type", "rope_theta", "factor"]), st.text(max_size=2)),
)
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}


def said(folder: Path, against: Against | None = None) -> list[str]:
    found = verify_folder(folder, against or Against()).faults
    assert {fault.name for fault in found} <= {"config.json"}
    return [fault.problem for fault in found]


def test_without_rope_theta_transformers_4_would_take_another(good: Folders) -> None:
    folder = good()
    edit_json(folder / "config.json", rope_theta=None)
    (problem,) = said(folder)
    assert "10,000 in place of 1,000,000" in problem


def test_two_bases(good: Folders) -> None:
    folder = good()
    edit_json(folder / "config.json", rope_theta=5e5)
    assert said(folder) == ["rope_theta is 500000, rope_parameters says 1e+06"]


@pytest.mark.parametrize(
    "old", [None, YARN, LLAMA | {"factor": 2.0}], ids=["none", "yarn", "factor"]
)
def test_two_scalings(good: Folders, old: dict[str, Any] | None) -> None:
    folder = good()
    new = {"rope_theta": 1e6, **LLAMA}
    edit_json(folder / "config.json", rope_parameters=new, rope_scaling=old)
    (problem,) = said(folder)
    assert "disagree" in problem


def test_both_spellings_of_one_scaling(good: Folders) -> None:
    folder = good()
    new = {"rope_theta": 1e6, **LLAMA}
    edit_json(folder / "config.json", rope_parameters=new, rope_scaling=LLAMA)
    assert said(folder) == []


def test_the_words_of_transformers_4_alone_are_read_by_5_too(good: Folders) -> None:
    folder = good()
    edit_json(folder / "config.json", rope_parameters=None, rope_scaling=LLAMA)
    assert said(folder) == []


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("rope_theta", 5e5, "rope_theta"),
        ("num_hidden_layers", 3, "num_layers"),
        ("rms_norm_eps", 1e-5, "rms_norm_eps"),
        ("max_position_embeddings", 4096, "max_position_embeddings"),
        ("num_attention_heads", 16, "num_heads"),
    ],
)
def test_a_config_of_another_model(
    good: Folders, made_folders: Folders, key: str, value: float, field: str
) -> None:
    folder = good()
    edit_json(folder / "config.json", **{key: value, "rope_parameters": None})
    problems = verify_folder(folder, Against(reference=made_folders("qwen3", False))).faults
    assert any(f"says {field} = {value}" in fault.problem for fault in problems)


def test_the_scaling_that_the_recipe_put_in(good: Folders, made_folders: Folders) -> None:
    folder, base = good(), made_folders("qwen3", False)
    wanted = Against(reference=base, rope_scaling=YARN)
    (problem,) = said(folder, wanted)
    assert "says rope_scaling = None; the run trained with YarnRope" in problem
    new = {"rope_theta": 1e6, **YARN}
    edit_json(folder / "config.json", rope_parameters=new, rope_scaling=YARN)
    assert said(folder, wanted) == []
    assert "the base model has None" in said(folder, Against(reference=base))[0]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"architectures": ["GPT2LMHeadModel"]}'])
def test_a_config_that_states_no_model(good: Folders, text: str) -> None:
    folder = good()
    (folder / "config.json").write_text(text)
    assert len(said(folder)) == 1


def test_no_config(good: Folders) -> None:
    folder = good()
    (folder / "config.json").unlink()
    assert said(folder) == ["is missing"]


@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        ({"dtype": "bfloat16"}, "bfloat16"),
        ({"torch_dtype": "torch.float16"}, "float16"),
        ({"text_config": {"dtype": "float32"}}, "float32"),
        ({}, None),
    ],
)
def test_the_dtype_that_a_config_states(config: dict[str, Any], dtype: str | None) -> None:
    assert stated_dtype(json.loads(json.dumps(config))) == dtype


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(key=st.sampled_from(KEYS), junk=JUNK)
def test_any_value_of_any_key_is_a_fault_at_most(
    made_folders: Folders, tmp_path: Path, key: str, junk: object
) -> None:
    config = json.loads((made_folders("qwen3", False) / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {key: junk}))
    assert not verify_folder(tmp_path).ok
