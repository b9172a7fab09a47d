"""Whatever one tensor is damaged in, and whichever it is, its name is said and no other's."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from longrl_tools.export.contents import compare_dtypes, compare_names, count_experts, count_total
from longrl_tools.export.folder import Weights
from longrl_tools.export.headers import Stored

from slime_ext.weights.names import expected_tensors
from slime_ext.weights.shape import ModelShape, shape_from_config
from tests.fakes.tiny_configs import FAMILIES, tiny_config


def whole(shape: ModelShape) -> Weights:
    tensors = {
        name: Stored("model.safetensors", "BF16", size, 0, 0)
        for name, size in expected_tensors(shape).items()
    }
    return Weights(Path("nowhere"), tensors)


def named(weights: Weights, shape: ModelShape) -> set[str]:
    """Names of all faults of names, shapes and dtypes."""
    expected = expected_tensors(shape)
    found = [*compare_names(weights, shape, expected, "the config")]
    return {fault.name for fault in [*found, *compare_dtypes(weights, "bfloat16", None)]}


@settings(max_examples=80, deadline=None)
@given(family=st.sampled_from(FAMILIES), tied=st.booleans(), data=st.data())
def test_one_damaged_tensor(family: str, tied: bool, data: st.DataObject) -> None:
    shape = shape_from_config(tiny_config(family, tied))
    weights = whole(shape)
    assert named(weights, shape) == set()
    name = data.draw(st.sampled_from(sorted(weights.tensors)))
    one = weights.tensors[name]
    damage = data.draw(st.sampled_from(["lost", "renamed", "rows", "dtype", "flat"]))
    blamed = {name}
    if damage in ("lost", "renamed"):
        del weights.tensors[name]
    if damage == "renamed":
        weights.tensors[f"{name}_scale"] = one
        blamed = {name, f"{name}_scale"}
    elif damage == "rows":
        size = (one.shape[0] + data.draw(st.integers(1, 64)), *one.shape[1:])
        weights.tensors[name] = dataclasses.replace(one, shape=size)
    elif damage == "dtype":
        other = data.draw(st.sampled_from(["F32", "F16", "I8", "F8_E4M3"]))
        weights.tensors[name] = dataclasses.replace(one, dtype=other)
    elif damage == "flat":
        weights.tensors[name] = dataclasses.replace(one, shape=(one.numel, 1))
    assert named(weights, shape) == blamed
    counted = damage in ("lost", "rows")
    assert [fault.name for fault in count_total(weights, shape)] == ["all tensors"] * counted


@settings(max_examples=30, deadline=None)
@given(st.sets(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=1))
def test_lost_experts_are_counted_in_their_layers(lost: set[tuple[int, int]]) -> None:
    shape = shape_from_config(tiny_config("qwen3_moe", tied=False))
    weights = whole(shape)
    for layer, expert in lost:
        prefix = f"model.layers.{layer}.mlp.experts.{expert}."
        for name in [name for name in weights.tensors if name.startswith(prefix)]:
            del weights.tensors[name]
    said = {fault.name: fault.problem for fault in count_experts(weights, shape)}
    for layer in range(2):
        absent = sorted(expert for at, expert in lost if at == layer)
        name = f"model.layers.{layer}.mlp.experts"
        assert (name in said) == bool(absent)
        if absent:
            listed = ", ".join(map(str, absent))
            assert said[name].startswith(f"{4 - len(absent)} experts, the config states 4")
            assert said[name].endswith(f"absent: {listed}")
