"""Hugging Face -> torch_dist -> Hugging Face is bitwise equal, in every family and layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from slime_ext.weights.export import stream
from slime_ext.weights.export.plan import plan_export, refuse_extra
from slime_ext.weights.export.write import export_weights
from slime_ext.weights.hf_folder import read_hf
from slime_ext.weights.names import hf_to_megatron
from slime_ext.weights.shape import shape_from_config
from tests.fakes.megatron_checkpoints import CASES, megatron_args, random_weights
from tests.fakes.plain_checkpoints import write_live_names, write_plain
from tests.fakes.tiny_configs import FAMILIES, tiny_config

Case = Callable[[str, bool, str], tuple[Path, dict[str, Any]]]


def exported(
    checkpoint: Path, config: dict[str, Any], out: Path, **options: Any
) -> dict[str, torch.Tensor]:
    plan = plan_export(checkpoint, config)
    refuse_extra(plan)
    export_weights(plan, out, lambda folder: None, **options)
    return read_hf(out)


def assert_same(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor), name


@pytest.mark.parametrize(("family", "tied", "layout"), CASES)
def test_what_megatron_wrote_comes_back_bit_for_bit(
    case: Case, tmp_path: Path, family: str, tied: bool, layout: str
) -> None:
    checkpoint, config = case(family, tied, layout)
    found = exported(checkpoint, config, tmp_path / "out", shard_bytes=30_000)
    assert len(list((tmp_path / "out").glob("*.safetensors"))) > 1
    assert_same(found, load_file(checkpoint.parent.parent / "hf" / "model.safetensors"))


@pytest.mark.parametrize("family", FAMILIES)
def test_live_names_with_numbered_layers_are_found(tmp_path: Path, family: str) -> None:
    config = tiny_config(family, False)
    checkpoint = write_live_names(tmp_path / "iter_0000003", config)
    assert_same(exported(checkpoint, config, tmp_path / "out"), random_weights(config))


@pytest.mark.parametrize("layout", ["stacked", "numbered"])
def test_transformer_engines_names_of_experts_are_found(tmp_path: Path, layout: str) -> None:
    config = tiny_config("qwen3_moe", False)
    shape = shape_from_config(config)
    live = hf_to_megatron(random_weights(config), shape)
    tensors: dict[str, torch.Tensor] = {}
    for name, tensor in live.items():
        if ".local_experts." not in name:
            name = name.replace(
                "input_layernorm.weight", "self_attention.linear_qkv.layer_norm_weight"
            )
            tensors[name] = tensor
        elif layout == "numbered":
            start, _, rest = name.partition("local_experts.")
            expert, projection, _ = rest.split(".")
            tensors[f"{start}{projection}.weight{expert}"] = tensor
    if layout == "stacked":
        for projection in ("linear_fc1", "linear_fc2"):
            tensors[f"decoder.layers.mlp.experts.experts.{projection}.weight"] = torch.stack(
                [
                    torch.stack(
                        [
                            live[
                                f"decoder.layers.{layer}.mlp.experts.local_experts.{expert}."
                                f"{projection}.weight"
                            ]
                            for expert in range(4)
                        ]
                    )
                    for layer in range(2)
                ]
            )
    checkpoint = write_plain(tmp_path / "iter_0000003", tensors, megatron_args(shape, 97, 1))
    assert_same(exported(checkpoint, config, tmp_path / "out"), random_weights(config))


def test_small_blocks_and_transposed_storage_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BLOCK_BYTES", 300)
    config = tiny_config("qwen3", True)
    shape = shape_from_config(config)
    tensors = hf_to_megatron(random_weights(config), shape)
    name = "decoder.layers.0.mlp.linear_fc2.weight"
    tensors[name] = tensors[name].t().contiguous().t()
    checkpoint = write_plain(tmp_path / "iter_0000003", tensors)
    assert_same(exported(checkpoint, config, tmp_path / "out"), random_weights(config))


def test_the_dtype_is_the_one_asked_for(tmp_path: Path) -> None:
    config = tiny_config("llama", True)
    checkpoint = write_live_names(tmp_path / "iter_0000003", config, "float32")
    weights = random_weights(config, "float32")
    for dtype in ("bfloat16", "float16", "float32"):
        export_weights(
            plan_export(checkpoint, config, dtype), tmp_path / dtype, lambda folder: None
        )
        kind = getattr(torch, dtype)
        assert_same(read_hf(tmp_path / dtype), {n: t.to(kind) for n, t in weights.items()})
    mixed = {name: "float32" if "norm" in name else "bfloat16" for name in weights}
    export_weights(plan_export(checkpoint, config, mixed), tmp_path / "mixed", lambda folder: None)
    found = read_hf(tmp_path / "mixed")
    assert {n: str(t.dtype).removeprefix("torch.") for n, t in found.items()} == mixed
