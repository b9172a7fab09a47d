"""Files beside the weights: copied byte for byte, config.json rewritten for every reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from longrl_tools.export.configs import compare_shapes
from longrl_tools.export.side_files import (
    check_side_files,
    exported_config,
    side_files,
    write_side_files,
)

from slime_ext.weights.rope_config import scaling_from_config
from slime_ext.weights.shape import read_shape, shape_from_config
from tests.fakes.tiny_configs import FAMILIES, tiny_config
from tests.tools.export.folders import CHAT_TEMPLATE

Folders = Callable[..., Path]
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
QWEN3_5: dict[str, Any] = {
    "architectures": ["Qwen3_5ForConditionalGeneration"],
    "tie_word_embeddings": True,
    "text_config": {
        "num_hidden_layers": 4,
        "hidden_size": 64,
        "num_attention_heads": 4,
        "head_dim": 32,
        "intermediate_size": 96,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "vocab_size": 97,
        "rms_norm_eps": 1e-6,
        "dtype": "float32",
        "rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.25},
        "max_position_embeddings": 512,
    },
}


def test_what_is_taken_over(good: Folders, tmp_path: Path) -> None:
    base, out = good(), tmp_path / "out"
    out.mkdir()
    for name in ("pytorch_model.bin.index.json", "optimizer.pt", "NOTICE", "merges.txt"):
        (base / name).write_text("{}")
    write_side_files(base, out, "bfloat16")
    assert sorted(path.name for path in out.iterdir()) == [
        "LICENSE",
        "NOTICE",
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "merges.txt",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert (out / "chat_template.jinja").read_text() == CHAT_TEMPLATE
    assert list(check_side_files(out, base)) == []


@pytest.mark.parametrize("name", ["chat_template.jinja", "generation_config.json", "LICENSE"])
def test_a_file_that_is_missing_or_changed_is_named(
    good: Folders, made_folders: Folders, name: str
) -> None:
    folder, base = good(), made_folders("qwen3", False)
    (folder / name).write_text("other")
    assert [fault.name for fault in check_side_files(folder, base)] == [name]
    (folder / name).unlink()
    (fault,) = check_side_files(folder, base)
    assert (fault.name, "is missing" in fault.problem) == (name, True)


def test_no_tokenizer(good: Folders) -> None:
    folder = good()
    (folder / "tokenizer.json").unlink()
    assert [fault.name for fault in check_side_files(folder, None)] == ["tokenizer.json"]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_exported_config_is_the_same_model(family: str) -> None:
    config = tiny_config(family, tied=False, rope_theta=5e5)
    exported = exported_config(config | {"_name_or_path": "/home/me/model"}, "bfloat16")
    assert exported["dtype"] == exported["torch_dtype"] == "bfloat16"
    assert exported["rope_theta"] == exported["rope_parameters"]["rope_theta"] == 5e5
    assert "_name_or_path" not in exported
    assert shape_from_config(exported) == shape_from_config(config)


def test_the_recipes_scaling_replaces_the_models_own() -> None:
    llama = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    old = llama | {"original_max_position_embeddings": 8192}
    config = tiny_config("llama", tied=False, rope_theta=5e5, rope_scaling=old)
    exported = exported_config(config, "float32", {"type": "yarn", **YARN})
    assert exported["rope_scaling"] == YARN
    assert exported["rope_parameters"] == {"rope_theta": 5e5, **YARN}
    shape = shape_from_config(exported)
    scaling = scaling_from_config(YARN, "here")
    assert list(compare_shapes(shape, shape_from_config(config), scaling)) == []


def test_the_attention_factor_that_sglang_derives_is_written_for_transformers() -> None:
    config = tiny_config("qwen3", tied=False)
    exported = exported_config(config, "bfloat16", YARN | {"attn_factor": 0.5})
    assert exported["rope_parameters"]["attention_factor"] == pytest.approx(
        0.5 * (0.1 * 1.3862943611 + 1)
    )
    assert shape_from_config(exported).rope_scaling == scaling_from_config(
        YARN | {"attn_factor": 0.5}, "here"
    )


def test_a_nested_config_keeps_its_form() -> None:
    exported = exported_config(QWEN3_5, "bfloat16")
    assert exported["text_config"]["dtype"] == "bfloat16"
    assert "rope_theta" not in exported
    assert shape_from_config(exported) == shape_from_config(QWEN3_5)


def test_weights_are_no_side_files(good: Folders) -> None:
    assert not [name for name in side_files(good()) if "safetensors" in name]


def test_transformers_reads_the_config(good: Folders, tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoTokenizer

    base = good()
    write_side_files(base, tmp_path, "bfloat16", YARN)
    config = AutoConfig.from_pretrained(tmp_path)
    assert config.rope_parameters == {"rope_theta": 1e6, **YARN}
    assert str(config.dtype) == "torch.bfloat16"
    assert AutoTokenizer.from_pretrained(tmp_path).chat_template == CHAT_TEMPLATE
    assert json.loads((tmp_path / "config.json").read_text())["rope_scaling"] == YARN
    assert read_shape(tmp_path).rope_theta == 1e6
