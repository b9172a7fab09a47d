"""Every kind of fault planted in a good folder is found and named; a good folder has none."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from longrl_tools.export.verify import Against, NoBaseModelError, Verified, verify_folder

from slime_ext.weights.names import expected_tensors
from slime_ext.weights.shape import read_shape
from tests.fakes.tiny_configs import FAMILIES
from tests.tools.export.folders import (
    INDEX,
    edit_header,
    edit_json,
    edit_tensors,
    read_tensors,
    write_shards,
)

Folders = Callable[..., Path]
EMBEDDING = "model.embed_tokens.weight"
SECOND = "model-00002-of-00002.safetensors"
QUERY = "model.layers.1.self_attn.q_proj.weight"


def faults(found: Verified) -> dict[str, str]:
    by_name: dict[str, list[str]] = {}
    for fault in found.faults:
        by_name.setdefault(fault.name, []).append(fault.problem)
    return {name: "; ".join(problems) for name, problems in by_name.items()}


@pytest.fixture
def base(made_folders: Folders) -> Path:
    return made_folders("qwen3", False)


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_good_folder_has_no_fault(made_folders: Folders, family: str, tied: bool) -> None:
    folder = made_folders(family, tied)
    found = verify_folder(folder, Against(reference=folder, dtype="bfloat16"), values=True)
    assert found.lines()[1:] == []
    sizes = expected_tensors(read_shape(folder)).values()
    assert found.parameters == sum(int(torch.Size(size).numel()) for size in sizes)


def test_what_was_not_looked_at_is_said(made_folders: Folders) -> None:
    found = verify_folder(made_folders("qwen3", False))
    assert found.ok
    assert [line.split(":")[0].strip() for line in found.lines()[1:]] == ["not checked"] * 2


def test_numbers_are_read_only_when_asked(good: Folders) -> None:
    folder = good()
    edit_tensors(folder, {QUERY: torch.zeros(128, 48, dtype=torch.bfloat16)})
    assert verify_folder(folder).ok
    assert faults(verify_folder(folder, values=True)) == {QUERY: "is all zero"}


def test_a_deleted_shard_names_its_tensors(good: Folders) -> None:
    folder = good()
    held = {
        n for n, f in json.loads((folder / INDEX).read_text())["weight_map"].items() if f == SECOND
    }
    (folder / SECOND).unlink()
    found = faults(verify_folder(folder))
    assert {name for name, problem in found.items() if SECOND in problem} == held
    assert set(found) - held == {"all tensors"}


def test_a_shard_lost_with_its_index_is_missed_by_the_table_and_the_base(
    good: Folders, base: Path
) -> None:
    folder = good()
    tensors = read_tensors(folder)
    lost = {name for name in tensors if ".layers.1." in name}
    write_shards(folder, {k: v for k, v in tensors.items() if k not in lost}, 2)
    assert lost < set(faults(verify_folder(folder)))
    # A family without a table has only the base model to be held against.
    edit_json(folder / "config.json", architectures=["Qwen3_5ForCausalLM"])
    assert not lost & set(faults(verify_folder(folder)))


def test_a_truncated_shard(good: Folders) -> None:
    folder = good()
    os.truncate(folder / SECOND, (folder / SECOND).stat().st_size - 2)
    found = faults(verify_folder(folder))
    assert "cut off before the end of" in found[SECOND]


def test_no_weights_at_all(good: Folders) -> None:
    folder = good()
    for file in folder.glob("model*"):
        file.unlink()
    assert "is there" in faults(verify_folder(folder))["model.safetensors"]


def test_padding_of_the_vocabulary(good: Folders, base: Path) -> None:
    folder = good()
    padded = torch.randn(256, 48).bfloat16()
    edit_tensors(folder, {EMBEDDING: padded, "lm_head.weight": padded})
    for against in (Against(), Against(reference=base)):
        found = faults(verify_folder(folder, against))
        assert "padding" in found[EMBEDDING]
        assert "padding" in found["lm_head.weight"]
        assert "[256, 48]" in found[EMBEDDING]


def test_a_missing_expert_is_counted_in_its_layer(good: Folders) -> None:
    folder = good("qwen3_moe")
    lost = [f"model.layers.1.mlp.experts.2.{part}_proj.weight" for part in ("gate", "up", "down")]
    edit_tensors(folder, dict.fromkeys(lost))
    found = faults(verify_folder(folder))
    assert found["model.layers.1.mlp.experts"] == "3 experts, the config states 4; absent: 2"
    assert set(lost) < set(found)


def test_one_expert_too_many(good: Folders) -> None:
    folder = good("qwen3_moe")
    extra = "model.layers.0.mlp.experts.4.down_proj.weight"
    edit_tensors(folder, {extra: torch.randn(48, 24).bfloat16()})
    found = faults(verify_folder(folder))
    assert found["model.layers.0.mlp.experts"] == "5 experts, the config states 4"
    assert "unexpected" in found[extra]


def test_an_unexpected_tensor_unless_allowed(good: Folders) -> None:
    folder = good()
    edit_tensors(folder, {"mtp.norm.weight": torch.randn(48).bfloat16()})
    assert "unexpected" in faults(verify_folder(folder))["mtp.norm.weight"]
    assert verify_folder(folder, Against(allow_extra=True)).ok


def test_a_tied_head(good: Folders) -> None:
    folder = good("qwen3", True)
    head = read_tensors(folder)[EMBEDDING].clone()
    edit_tensors(folder, {"lm_head.weight": head})
    assert verify_folder(folder, values=True).ok
    head[3, 5] += 1
    edit_tensors(folder, {"lm_head.weight": head})
    found = verify_folder(folder)
    assert found.ok
    assert any("lm_head.weight" in line for line in found.not_checked)
    assert EMBEDDING in faults(verify_folder(folder, values=True))["lm_head.weight"]
    edit_tensors(folder, {"lm_head.weight": head[:90]})
    assert "[90, 48]" in faults(verify_folder(folder))["lm_head.weight"]


def test_an_untied_model_without_its_head(good: Folders) -> None:
    folder = good()
    edit_tensors(folder, {"lm_head.weight": None})
    assert "missing" in faults(verify_folder(folder))["lm_head.weight"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_numbers_that_are_not_finite(good: Folders, bad: float, dtype: torch.dtype) -> None:
    folder = good()
    tensor = torch.randn(128, 48).to(dtype)
    tensor[7, 7] = bad
    edit_tensors(folder, {QUERY: tensor})
    assert "1 of 6,144" in faults(verify_folder(folder, values=True))[QUERY]


def test_a_constant_passes_where_the_base_model_has_it(good: Folders, tmp_path: Path) -> None:
    folder, norm = good(), "model.layers.0.self_attn.q_norm.weight"
    ones = {norm: torch.ones(16, dtype=torch.bfloat16)}
    edit_tensors(folder, ones)
    assert faults(verify_folder(folder, values=True)) == {norm: "is the same number throughout"}
    base = shutil.copytree(folder, tmp_path / "base")
    assert verify_folder(folder, Against(reference=base), values=True).ok
    edit_tensors(base, {norm: torch.full((16,), 2.0)})
    edit_json(base / "config.json", dtype="float32")
    assert norm in faults(verify_folder(folder, Against(reference=base), values=True))


def test_negative_zero_is_zero(good: Folders) -> None:
    folder = good()
    zeros = torch.zeros(128, 48)
    zeros[::2] = -0.0
    edit_tensors(folder, {QUERY: zeros.bfloat16()})
    assert faults(verify_folder(folder, values=True)) == {QUERY: "is all zero"}


def test_a_wrong_dtype(good: Folders, base: Path) -> None:
    folder = good()
    edit_tensors(folder, {QUERY: torch.randn(128, 48)})
    found = faults(verify_folder(folder, Against(reference=base)))
    assert found == {QUERY: "is float32, bfloat16 was expected"}


def test_the_dtype_asked_for_is_asserted_from_headers_and_config(good: Folders) -> None:
    found = faults(verify_folder(good(), Against(dtype="float32")))
    assert "float32 was asked for" in found["config.json"]
    assert found[QUERY] == "is bfloat16, float32 was expected"


def test_a_tensor_the_base_model_keeps_in_another_dtype(good: Folders, tmp_path: Path) -> None:
    folder = good()
    edit_tensors(folder, {QUERY: torch.randn(128, 48)})
    base = shutil.copytree(folder, tmp_path / "base")
    assert verify_folder(folder, Against(reference=base)).ok


def test_an_index_that_names_a_missing_file(good: Folders) -> None:
    folder = good()
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"][QUERY] = "model-00003-of-00003.safetensors"
    (folder / INDEX).write_text(json.dumps(index))
    assert "not there" in faults(verify_folder(folder))[QUERY]


def test_an_index_that_errs(good: Folders) -> None:
    folder = good()
    index = json.loads((folder / INDEX).read_text())
    there = index["weight_map"].pop(QUERY)
    index["weight_map"][EMBEDDING] = SECOND
    index["weight_map"]["model.ghost.weight"] = SECOND
    (folder / INDEX).write_text(json.dumps(index))
    found = faults(verify_folder(folder))
    assert there in found[QUERY]
    assert "but it is in model-00001-of-00002.safetensors" in found[EMBEDDING]
    assert "no file holds it" in found["model.ghost.weight"]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"weight_map": 3}', '{"weight_map": {"a": "../x.safetensors"}}']
)
def test_an_index_that_cannot_be_used(good: Folders, text: str) -> None:
    folder = good()
    (folder / INDEX).write_text(text)
    assert INDEX in faults(verify_folder(folder))


@pytest.mark.parametrize("total", [2, "many", [], -1.5])
def test_a_wrong_total_in_the_index(good: Folders, total: object) -> None:
    folder = good()
    index = json.loads((folder / INDEX).read_text())
    index["metadata"]["total_size"] = total
    (folder / INDEX).write_text(json.dumps(index))
    assert "total_size" in faults(verify_folder(folder))[INDEX]


def test_an_index_without_a_total(good: Folders) -> None:
    folder = good()
    for metadata in ({}, None, 3):
        edit_json(folder / INDEX, metadata=metadata)
        assert verify_folder(folder).ok


def test_an_empty_tensor_is_named_by_its_shape(good: Folders, base: Path) -> None:
    folder = good()
    edit_tensors(folder, {QUERY: torch.zeros(0, 48, dtype=torch.bfloat16)})
    found = faults(verify_folder(folder, Against(reference=base), values=True))
    assert "is [0, 48]" in found[QUERY]


def test_a_file_the_index_does_not_name(good: Folders) -> None:
    folder = good()
    shutil.copyfile(folder / SECOND, folder / "model-00009-of-00009.safetensors")
    found = faults(verify_folder(folder))
    assert "does not name it" in found["model-00009-of-00009.safetensors"]
    assert "stands in both" in found["lm_head.weight"]


def test_one_file_that_hides_the_others(good: Folders) -> None:
    folder = good()
    text = (folder / INDEX).read_text().replace(SECOND, "model.safetensors")
    (folder / INDEX).write_text(text)
    (folder / SECOND).rename(folder / "model.safetensors")
    assert "reads it alone" in faults(verify_folder(folder))["model.safetensors"]


def test_a_shape_transposed(good: Folders) -> None:
    folder = good()

    def change(table: dict[str, dict[str, object]]) -> None:
        table[QUERY]["shape"] = [48, 128]

    edit_header(folder / SECOND, change)
    assert "[48, 128], the config says [128, 48]" in faults(verify_folder(folder))[QUERY]


def test_a_base_model_that_is_none(good: Folders, tmp_path: Path) -> None:
    folder = good()
    with pytest.raises(NoBaseModelError, match="is missing"):
        verify_folder(folder, Against(reference=tmp_path))
    other = shutil.copytree(folder, tmp_path / "other")
    os.truncate(other / SECOND, 100)
    with pytest.raises(NoBaseModelError, match="not whole itself"):
        verify_folder(folder, Against(reference=other))


def test_a_base_model_of_another_kind(good: Folders, made_folders: Folders) -> None:
    found = faults(verify_folder(good(), Against(reference=made_folders("llama", False))))
    assert "says architecture = qwen3; the base model has llama" in found["config.json"]
    assert "unexpected" in found["model.layers.0.self_attn.q_norm.weight"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is no folder"):
        verify_folder(tmp_path / "nothing")
