"""Log-prob memory of the two hosts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.plan.log_probs import USUAL_CHUNK, LogProbMemory, no_grad_passes
from launch.plan.measure.planned import planned
from launch.plan.plan import make_plan
from launch.plan.tokens import most_response_rows
from tests.launch.plan.made import made, shape_of


def memory(version: str, **changes: object) -> LogProbMemory:
    recipe = made(slime__version=version, rollout__context_tokens=160000, **changes)
    return make_plan(recipe, shape_of("4b")).log_probs


def test_v024_takes_half_the_rows_at_160k() -> None:
    newer, older = memory("v0.3.1"), memory("v0.2.4")
    # 8 pieces of 20,000: the response fills the last one, on rank 0, and 12,000 of rank 1's.
    assert older.rows == 20000
    assert newer.rows == 40448  # 40,000, padded to 128 x tp
    copies = older.no_grad_whole / older.logits_fp32
    assert copies == pytest.approx(1 + 2 * 20000 / 40448)
    assert older.no_grad_whole < newer.no_grad_whole + 1e-6 * newer.no_grad_whole


@pytest.mark.parametrize(
    ("response", "cp", "copies"),
    [
        # Peaks of slime v0.2.4's own function on CPU, in fp32 copies of the local logits.
        (1 / 2, 1, 2.75),
        (1, 1, 4.5),
        (1 / 8, 1, 2.5),
        (1 / 8, 2, 3.5),
        (1, 2, 5.0),
    ],
)
def test_v024_training_pass_as_measured(response: float, cp: int, copies: float) -> None:
    tokens = 2**17
    recipe = made(
        slime__version="v0.2.4",
        parallel__tp=1,
        parallel__pp=1,
        parallel__cp=cp,
        data__max_prompt_tokens=1000,
        rollout__context_tokens=tokens,
        rollout__max_response_tokens=int(response * tokens),
    )
    planned = make_plan(recipe, shape_of("4b")).log_probs
    assert planned.train_whole / planned.logits_fp32 == pytest.approx(copies, rel=0.01)


@given(total=st.integers(2, 5000), share=st.floats(0, 1), cp=st.integers(1, 16))
def test_response_rows_against_a_count_of_tokens(total: int, share: float, cp: int) -> None:
    response = max(1, int(share * total))
    piece = -(-total // (2 * cp))
    counts = [0] * cp
    for token in range(total - response, total):
        index = token // piece
        counts[min(index, 2 * cp - 1 - index)] += 1
    assert most_response_rows(total, response, cp) == max(counts)
    assert sum(counts) == response


@pytest.mark.parametrize(
    ("version", "updates", "kl", "passes"),
    [
        ("v0.3.1", 1, 0.0, 0),
        ("v0.3.1", 2, 0.0, 1),
        ("v0.3.1", 1, 0.001, 1),
        ("v0.2.4", 1, 0.0, 1),
        ("v0.2.4", 2, 0.001, 2),
    ],
)
def test_passes_without_gradients(version: str, updates: int, kl: float, passes: int) -> None:
    recipe = made(slime__version=version, rollout__updates=updates, loss__kl_coef=kl)
    assert no_grad_passes(recipe) == passes


def test_another_temperature_costs_a_copy() -> None:
    plain, scaled = memory("v0.3.1"), memory("v0.3.1", rollout__temperature=0.7)
    assert scaled.train - plain.train == pytest.approx(plain.logits_fp32)


def test_making_fp32_logits_takes_more_than_log_probs_in_chunks() -> None:
    cut = memory("v0.3.1", performance__log_prob_chunk=256)
    assert cut.conversion == 1.5 * cut.logits_fp32 > cut.no_grad_chunked
    recipe = made(performance__log_prob_chunk=256)
    terms = planned(recipe, shape_of("4b"), "last", None, None).terms
    assert terms["log_prob_no_grad_chunked"] == pytest.approx(
        0.75 * terms["log_prob_no_grad_unchunked"]
    )


def test_without_a_chunk_a_usual_one_shows_what_it_would_save() -> None:
    plain, cut = (
        memory("v0.3.1", performance__log_prob_chunk=None),
        memory("v0.3.1", performance__log_prob_chunk=USUAL_CHUNK),
    )
    assert plain.no_grad_chunked == cut.no_grad_chunked < plain.no_grad_whole
    assert plain.train < cut.train
