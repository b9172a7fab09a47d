"""The worked example: three models on 32 GPUs of 80 GB, TP 4, PP 2, CP 4, at 163,840 tokens.

The numbers below were worked out by hand from the formulas, apart from this code.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from launch.plan.plan import Plan, make_plan
from tests.launch.plan.made import made, shape_of

MODELS = ("4b", "8b", "30b")
GB = 1e9
GIB = 2**30
WITHIN = 0.01


def planned(model: str, **changes: object) -> Plan:
    experts = {"parallel__ep": 16} if model == "30b" else {}
    return make_plan(made(**experts, **changes), shape_of(model))


def close(value: float, rounded: float, digit: float) -> bool:
    """Within 1% of a number that was rounded to `digit`."""
    return abs(value - rounded) <= WITHIN * rounded + digit / 2


TABLE = {
    "parameters": ((4.02, 8.19, 30.53), 0.01),
    "dense": ((0.552, 1.024, 0.198), 0.001),
    "expert": ((0.0, 0.0, 0.906), 0.001),
    "weights": ((1.10, 2.05, 2.21), 0.01),
    "gradients": ((2.21, 4.10, 4.41), 0.01),
    "optimiser": ((1.65, 3.07, 11.46), 0.01),
    "static": ((4.96, 9.22, 18.08), 0.01),
    "checkpoints first": ((1.89, 3.02, 2.01), 0.01),
    "checkpoints last": ((0.94, 1.51, 1.01), 0.01),
    "working set": ((3.4, 4.4, 3.9), 0.1),
    "logits bf16": ((3.11, 3.11, 3.11), 0.01),
    "logits fp32": ((6.23, 6.23, 6.23), 0.01),
    "training whole": ((15.6, 15.6, 15.6), 0.1),
    "training chunked": ((21.8, 21.8, 21.8), 0.1),
    "no grad whole": ((12.5, 12.5, 12.5), 0.1),
    "no grad chunked": ((6.3, 6.3, 6.3), 0.1),
    "peak first": ((10.4, 16.9, 24.1), 0.1),
    "peak last, unchunked": ((21.5, 26.3, 34.7), 0.1),
    "sequence": ((24.2, 24.2, 16.1), 0.1),
    "sequence held": ((24.2, 24.2, 32.2), 0.1),
}


def value(plan: Plan, row: str) -> float:
    first, last, logits = plan.stages[0], plan.stages[-1], plan.log_probs
    unchunked = last.static + last.activations + logits.train_whole
    values = {
        "parameters": plan.parameters,
        "dense": first.dense_parameters,
        "expert": first.expert_parameters,
        "weights": first.weights,
        "gradients": first.gradients,
        "optimiser": first.optimiser,
        "static": first.static,
        "checkpoints first": first.activations,
        "checkpoints last": last.activations,
        "working set": first.working_set,
        "logits bf16": logits.logits_bf16,
        "logits fp32": logits.logits_fp32,
        "training whole": logits.train_whole,
        "training chunked": logits.train_chunked,
        "no grad whole": logits.no_grad_whole,
        "no grad chunked": logits.no_grad_chunked,
        "peak first": first.peak,
        "peak last, unchunked": unchunked,
        "sequence": plan.engine.kv_bytes_per_token * plan.context_tokens,
        "sequence held": plan.engine.sequence_bytes,
    }
    return values[row] / GB


@pytest.mark.parametrize("row", TABLE)
@pytest.mark.parametrize("model", MODELS)
def test_memory_on_one_gpu(model: str, row: str) -> None:
    rounded, digit = TABLE[row]
    assert close(value(planned(model), row), rounded[MODELS.index(model)], digit)


@pytest.mark.parametrize(("model", "expected"), zip(MODELS, (7.55, 12.08, 8.05), strict=True))
def test_checkpoints_without_sequence_parallel(model: str, expected: float) -> None:
    # Experts under tensor parallel need sequence parallel, so the term alone is computed.
    from launch.plan.activations import checkpoints
    from launch.plan.layout import layout_of
    from launch.plan.tokens import largest_micro_batch

    recipe = made(parallel__sequence_parallel=False)
    layout = layout_of(recipe)
    batch = largest_micro_batch(recipe, layout)
    assert close(checkpoints(shape_of(model), layout, batch, 0) / GB, expected, 0.01)


@pytest.mark.parametrize(
    ("model", "kv", "pool", "millions", "sequences"),
    [
        ("4b", 147456, 54.8, 3.19, 19),
        ("8b", 147456, 53.8, 3.13, 19),
        ("30b", 98304, 48.6, 2.12, 12),
    ],
)
def test_engine(model: str, kv: int, pool: float, millions: float, sequences: int) -> None:
    engine = planned(model).engine
    assert engine.kv_bytes_per_token == kv
    assert close(engine.pool_per_gpu / GIB, pool, 0.1)
    assert close(engine.tokens / 1e6, millions, 0.01)
    assert engine.sequences == sequences
    assert engine.engines == 4
    assert engine.sequences * engine.engines == {19: 76, 12: 48}[sequences]


def test_attention_groups_hold_key_value_heads_once() -> None:
    # TP 4 x DP 2: 25 sequences instead of 12; attention and vocabulary are then held twice.
    engine = planned("30b", engine__dp_attention=2).engine
    assert engine.kv_bytes_per_token_held == engine.kv_bytes_per_token
    assert engine.sequences in (24, 25)


def test_v031_chunking_saves_without_gradients_and_costs_with_them() -> None:
    memory = planned("4b").log_probs
    assert memory.rows == 40960
    assert memory.no_grad_chunked < 0.55 * memory.no_grad_whole
    extra = memory.train_whole - memory.logits_fp32
    assert memory.train_chunked - memory.train_whole == pytest.approx(memory.logits_fp32)
    assert memory.train_chunked > memory.train_whole > extra


def test_all_three_fit_on_paper() -> None:
    assert [planned(model).verdict for model in MODELS] == ["fits"] * 3


@pytest.mark.parametrize(("model", "save", "weights"), [("4b", 56, 8.0), ("30b", 427, 61.1)])
def test_disk(model: str, save: float, weights: float) -> None:
    disk = planned(model).disk
    assert close(disk.save / GB, save, 1)
    assert close(disk.weights / GB, weights, 0.1)
    assert disk.peak == 3 * disk.save + disk.weights
    assert replace(disk, best=True).peak == 3 * disk.save + 3 * disk.weights
