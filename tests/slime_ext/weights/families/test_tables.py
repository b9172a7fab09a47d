"""Every family's table against transformers, and its three ways of cutting a fused tensor."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from slime_ext.weights.count import count_parameters
from slime_ext.weights.names import (
    expected_tensors,
    hf_to_megatron,
    megatron_shapes,
    megatron_to_hf,
    rows,
)
from slime_ext.weights.shape import ModelShape, shape_from_config
from slime_ext.weights.table import UnknownFamilyError, layer_table, row_ranges
from tests.fakes.tiny_configs import FAMILIES, tiny_config


@pytest.fixture(params=[(f, t) for f in FAMILIES for t in (True, False)], ids=lambda p: f"{p}")
def config(request: pytest.FixtureRequest) -> dict[str, Any]:
    return tiny_config(*request.param)


def random_state(shape: ModelShape) -> dict[str, torch.Tensor]:
    return {name: torch.randn(size).bfloat16() for name, size in expected_tensors(shape).items()}


def test_names_and_shapes_are_those_that_transformers_saves(
    config: dict[str, Any], tmp_path: Any
) -> None:
    from safetensors import safe_open
    from transformers import AutoConfig, AutoModelForCausalLM

    made = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))
    made.save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        saved = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    assert expected_tensors(shape_from_config(config)) == saved


def test_a_round_trip_is_exact(config: dict[str, Any]) -> None:
    shape = shape_from_config(config)
    state = random_state(shape)
    megatron = hf_to_megatron(state, shape)
    assert {name: tuple(t.shape) for name, t in megatron.items()} == megatron_shapes(shape)
    back = megatron_to_hf(megatron, shape)
    assert back.keys() == state.keys()
    assert all(torch.equal(back[name], state[name]) for name in state)


def test_row_ranges_cut_what_splitting_cuts(config: dict[str, Any]) -> None:
    shape = shape_from_config(config)
    state = random_state(shape)
    megatron = hf_to_megatron(state, shape)
    for named in rows(shape):
        whole = megatron[named.megatron]
        taken = []
        for part, name in enumerate(named.hf):
            ranges = row_ranges(named.row, part, shape)
            taken += ranges
            assert torch.equal(torch.cat([whole[a:b] for a, b in ranges]), state[name])
        assert sorted(taken)[0][0] == 0
        assert sum(end - start for start, end in taken) == whole.shape[0]


def test_the_count_of_parameters_is_that_of_the_table(config: dict[str, Any]) -> None:
    shape = shape_from_config(config)
    total = sum(torch.Size(size).numel() for size in expected_tensors(shape).values())
    assert count_parameters(shape).total == total


def test_a_family_without_a_table_is_named() -> None:
    with pytest.raises(UnknownFamilyError, match="slime's own converter"):
        layer_table("qwen3_5")
