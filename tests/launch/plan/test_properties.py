"""Properties of the memory model over many layouts and lengths."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launch.plan.layout import layout_of
from launch.plan.plan import Plan, at_context, make_plan
from launch.plan.rules import broken_rules
from launch.plan.stage import stage_parameters
from slime_ext.weights.count import count_parameters
from tests.launch.plan.made import made, shape_of

MODELS = st.sampled_from(["4b", "8b", "30b", "hybrid"])
HOSTS = st.sampled_from(["v0.3.1", "v0.2.4"])
POWERS = st.sampled_from([1, 2, 4, 8])


def planned(model: str, tokens: int, **changes: object) -> Plan:
    apart = {"cluster__colocate": False, "cluster__rollout_gpus": 8}
    base = {"cluster__nodes": 64, "parallel__dp": 1, **apart}
    return make_plan(at_context(made(**(base | changes)), tokens), shape_of(model))


@settings(max_examples=40, deadline=None)
@given(model=MODELS, tp=st.sampled_from([1, 2, 4]), cp=POWERS,
       tokens=st.integers(9000, 400_000), more=st.integers(1, 400_000))  # fmt: skip
def test_memory_never_falls_with_the_context(
    model: str, tp: int, cp: int, tokens: int, more: int
) -> None:
    # Not so for v0.2.4, where a longer prompt can leave fewer response rows to the fullest rank.
    layout = {"parallel__tp": tp, "parallel__cp": cp}
    short, long = planned(model, tokens, **layout), planned(model, tokens + more, **layout)
    for a, b in zip(short.stages, long.stages, strict=True):
        assert a.peak <= b.peak
        assert a.static == b.static
    assert short.engine.sequences >= long.engine.sequences
    assert short.engine.tokens == long.engine.tokens


@settings(max_examples=40, deadline=None)
@given(model=st.sampled_from(["4b", "8b", "30b"]), host=HOSTS, cp=st.sampled_from([2, 4, 8]),
       tokens=st.integers(100_000, 400_000))  # fmt: skip
def test_context_parallel_lowers_the_last_stage(
    model: str, host: str, cp: int, tokens: int
) -> None:
    few = planned(model, tokens, slime__version=host, parallel__cp=cp)
    many = planned(model, tokens, slime__version=host, parallel__cp=2 * cp)
    assert many.stages[-1].log_probs < few.stages[-1].log_probs
    assert many.stages[-1].activations < few.stages[-1].activations
    assert many.stages[-1].optimiser < few.stages[-1].optimiser
    assert many.peak < few.peak


@settings(max_examples=60, deadline=None)
@given(model=MODELS, tp=st.sampled_from([1, 2, 4]), pp=POWERS, ep=POWERS)
def test_all_shares_add_up_to_the_model(model: str, tp: int, pp: int, ep: int) -> None:
    shape = shape_of(model)
    experts = ep if shape.moe else 1
    recipe = made(parallel__tp=tp, parallel__pp=pp, parallel__ep=experts, parallel__cp=8,
                  cluster__nodes=tp * pp * 8 // 8 or 1)  # fmt: skip
    if broken_rules(recipe, shape):
        return
    layout = layout_of(recipe)
    shares = [stage_parameters(shape, layout, stage) for stage in range(pp)]
    held = sum(tp * one.dense + experts * one.expert for one in shares)
    counts = count_parameters(shape)
    copies = counts.embedding if shape.tied_embeddings and pp > 1 else 0
    # What is held more than once: norms, routers and gated-delta-net layers on every TP rank, the
    # padding of the vocabulary, and a tied embedding on two stages.
    least = counts.total + copies
    linear = shape.num_layers * counts.layer_linear_attention
    routers = shape.num_layers * counts.layer_mlp if shape.moe else 0
    norms = shape.num_layers * (counts.layer_norms + 2 * shape.head_dim) + counts.final_norm
    padding = 2 * 128 * tp * shape.hidden_size
    assert least <= held <= least + (tp - 1) * (linear + routers + norms) + padding


def test_the_longest_sample_rules_whatever_the_soft_limit() -> None:
    low = planned("4b", 160_000, performance__max_tokens_per_gpu=1024)
    high = planned("4b", 160_000, performance__max_tokens_per_gpu=40_000)
    beyond = planned("4b", 160_000, performance__max_tokens_per_gpu=80_000)
    assert low.batch.local == high.batch.local == 40_448
    assert beyond.batch.local == 80_384
    assert beyond.peak > high.peak


def test_a_hybrid_keeps_keys_of_its_full_attention_layers_and_a_constant_state() -> None:
    engine = planned("hybrid", 9216).engine
    # 8 of 32 layers, 4 heads of 256, keys and values, bf16.
    assert engine.kv_bytes_per_token == 8 * 2 * 4 * 256 * 2
    # 24 layers: fp32 state of 32 heads x 128 x 128, bf16 window of 3 x (2 x 2048 + 4096).
    assert engine.state_bytes_per_sequence == 24 * (32 * 128 * 128 * 4 + 3 * 8192 * 2)


def test_without_recompute_everything_is_kept() -> None:
    full = planned("4b", 160_000)
    none = planned("4b", 160_000, performance__recompute="none")
    assert none.stages[0].activations > 10 * full.stages[0].activations


@pytest.mark.parametrize(("kl", "copies"), [(0.0, 1), (0.001, 2)])
def test_host_memory_holds_the_weights_and_the_reference(kl: float, copies: int) -> None:
    plan = make_plan(made(loss__kl_coef=kl), shape_of("8b"))
    fullest = max(plan.stages, key=lambda stage: stage.static)
    assert plan.host_memory.weight_copies == 8 * copies * fullest.weights
    assert plan.host_memory.offloaded == 8 * fullest.optimiser
    older = make_plan(made(slime__version="v0.2.4"), shape_of("8b"))
    assert older.host_memory.offloaded == 8 * fullest.static
    stays = make_plan(made(performance__offload=False), shape_of("8b"))
    assert stays.host_memory.offloaded == 0
