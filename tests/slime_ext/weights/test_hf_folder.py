"""Model folders: transformers reads what we write, we read what transformers shards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from slime_ext.weights.hf_folder import read_hf, with_both_rope_forms, write_hf


def test_write_then_transformers_gives_the_same_logits(
    hf_model: torch.nn.Module, tmp_path: Path
) -> None:
    hf_model.save_pretrained(tmp_path / "source")
    (tmp_path / "source" / "chat_template.jinja").write_text("{{ messages }}")
    write_hf(tmp_path / "copy", read_hf(tmp_path / "source"), tmp_path / "source")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "copy").eval()
    ids = torch.randint(97, (2, 90))
    assert torch.equal(loaded(ids).logits, hf_model(ids).logits)
    assert (tmp_path / "copy" / "chat_template.jinja").read_text() == "{{ messages }}"
    assert (tmp_path / "copy" / "generation_config.json").is_file()


def test_both_rope_forms_are_written_and_agree(hf_model: torch.nn.Module, tmp_path: Path) -> None:
    hf_model.save_pretrained(tmp_path / "source")
    write_hf(tmp_path / "copy", read_hf(tmp_path / "source"), tmp_path / "source")
    config = json.loads((tmp_path / "copy" / "config.json").read_text())
    assert config["rope_theta"] == config["rope_parameters"]["rope_theta"]
    reread = AutoConfig.from_pretrained(tmp_path / "copy")
    assert reread.rope_parameters == hf_model.config.rope_parameters
    if config["rope_parameters"]["rope_type"] == "llama3":
        assert config["rope_scaling"]["factor"] == 8.0


def test_rope_forms_of_a_transformers_4_config() -> None:
    old = {"rope_theta": 5e6, "rope_scaling": None}
    assert with_both_rope_forms(old)["rope_parameters"] == {
        "rope_type": "default",
        "rope_theta": 5e6,
    }
    with pytest.raises(ValueError, match="rope_theta"):
        with_both_rope_forms({})


def test_sharded_folders_are_read_whole(hf_model: torch.nn.Module, tmp_path: Path) -> None:
    hf_model.save_pretrained(tmp_path / "one")
    hf_model.save_pretrained(tmp_path / "many", max_shard_size="20KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 1
    one, many = read_hf(tmp_path / "one"), read_hf(tmp_path / "many")
    assert one.keys() == many.keys()
    assert all(torch.equal(one[name], many[name]) for name in one)


def test_missing_weights_and_broken_index_are_errors(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="safetensors"):
        read_hf(tmp_path)
    safetensors.torch.save_file({"a": torch.zeros(1)}, tmp_path / "shard.safetensors")
    index = {"weight_map": {"a": "shard.safetensors", "b": "shard.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match="disagree about b"):
        read_hf(tmp_path)


def test_a_failed_write_leaves_the_old_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "config.json").write_text('{"rope_theta": 1.0}')
    write_hf(tmp_path / "out", {"a": torch.ones(2)}, source)

    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_hf(tmp_path / "out", {"a": torch.zeros(2)}, source)
    assert torch.equal(read_hf(tmp_path / "out")["a"], torch.ones(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]
