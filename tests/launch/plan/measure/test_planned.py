"""From a recipe to the share of one GPU, with the parameters that the plan counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from launch.plan.layout import layout_of
from launch.plan.measure.layers import StageShare
from launch.plan.measure.planned import planned
from launch.plan.measure.share import MeasureError
from launch.plan.rules import LayoutError
from launch.plan.stage import stage_parameters
from slime_ext.weights.shape import ModelShape
from tests.launch.plan.made import made, shape_of

EXPERTS = {"parallel__ep": 16}


def test_sizes_of_a_dense_share() -> None:
    share = planned(made(), shape_of("4b"), "last", None, None).share
    assert (share.heads, share.kv_heads, share.ffn) == (8, 2, 2432)
    assert (share.vocab, share.layers, share.tokens) == (38016, 18, 40960)
    assert (share.cut_tokens, share.shards, share.in_flight) == (10240, 4, 1)
    assert (share.has_embedding, share.has_head, share.response_rows) == (False, True, None)


def test_sizes_of_a_share_with_experts() -> None:
    share = planned(made(**EXPERTS), shape_of("30b"), "first", None, None).share
    assert (share.ffn, share.experts, share.all_experts, share.top_k) == (0, 8, 128, 8)
    assert (share.expert_ffn, share.expert_shards, share.in_flight) == (768, 1, 2)
    assert (share.has_embedding, share.has_head) == (True, False)


SHAPES = {
    "4b": shape_of("4b"),
    "8b": shape_of("8b"),
    "30b": shape_of("30b"),
    "qwen2": replace(shape_of("8b"), architecture="qwen2"),
    "llama": replace(shape_of("4b"), architecture="llama"),
}


@pytest.mark.parametrize("model", SHAPES)
@pytest.mark.parametrize("end", ["first", "last"])
@pytest.mark.parametrize(
    "cut", [{}, {"parallel__tp": 2}, {"parallel__pp": 1, "parallel__cp": 8}], ids=str
)
def test_the_modules_have_the_planned_parameters(model: str, end: str, cut: dict[str, int]) -> None:
    shape: ModelShape = SHAPES[model]
    experts = {"parallel__ep": 8, "parallel__etp": 2} if shape.moe else {}
    recipe = made(**experts, **cut)
    found = planned(recipe, shape, end, 4096, 2)  # type: ignore[arg-type]
    layout = layout_of(recipe)
    small = replace(shape, num_layers=2 * layout.pp)
    with torch.device("meta"):
        built = sum(one.numel() for one in StageShare(found.share).parameters())
    assert built == stage_parameters(small, layout, found.stage).total
    assert found.terms["weights"] == 2 * built


def test_the_stage_with_the_higher_peak_is_measured() -> None:
    assert planned(made(), shape_of("4b"), None, None, None).stage == 1
    # Without logits to speak of, the first stage's second micro-batch decides.
    few_words = replace(shape_of("4b"), vocab_size=512)
    assert planned(made(), few_words, None, None, None).stage == 0


def test_a_scaled_plan_keeps_the_ratios() -> None:
    full = planned(made(), shape_of("4b"), "last", None, None)
    half = planned(made(), shape_of("4b"), "last", 20480, None)
    for term in ("checkpoints", "layer", "log_prob_train_chunked", "log_prob_no_grad_chunked"):
        assert half.terms[term] == pytest.approx(full.terms[term] / 2)
    assert half.full == full.terms
    assert half.share.log_prob_chunk == 128


def test_without_chunks_both_ways_are_planned_all_the_same() -> None:
    whole = planned(made(performance__log_prob_chunk=None), shape_of("4b"), "last", 4096, None)
    assert (whole.share.chunked, whole.share.log_prob_chunk) == (False, 102)
    cut = planned(made(performance__log_prob_chunk=1024), shape_of("4b"), "last", 4096, None)
    assert cut.share.chunked
    for term in whole.terms:
        if term.startswith("log_prob"):
            assert whole.terms[term] == cut.terms[term]
    assert whole.terms["peak"] < cut.terms["peak"]


def test_v024_looks_at_response_rows() -> None:
    older = made(slime__version="v0.2.4")
    assert planned(older, shape_of("4b"), "last", None, None).share.response_rows == 20480
    assert planned(older, shape_of("4b"), "last", 4096, 2).share.response_rows == 2048


@pytest.mark.parametrize(("tokens", "instead"), [(4, 8), (1001, 1000)])
def test_tokens_that_cannot_be_cut(tokens: int, instead: int) -> None:
    with pytest.raises(MeasureError, match=f"write --tokens {instead}$"):
        planned(made(), shape_of("4b"), None, tokens, None)


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(MeasureError, match="gated-delta-net"):
        planned(made(), shape_of("hybrid"), None, None, None)
    with pytest.raises(LayoutError, match="key-value heads"):
        planned(made(parallel__tp=16), shape_of("4b"), None, None, None)
