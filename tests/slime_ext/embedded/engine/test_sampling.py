"""Random numbers, truncation and the choice of tokens."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_ext.embedded.engine.request import SamplingParams
from slime_ext.embedded.engine.sampling import RowSettings, truncate, uniforms

LOGITS = torch.tensor([2.0, 1.0, 0.0, -1.0, -2.0, -6.0])


def draw(count: int, **params: float) -> torch.Tensor:
    """One token of `count` requests that differ in their seeds only."""
    rows = [SamplingParams(seed=seed, **params) for seed in range(count)]  # type: ignore[arg-type]
    return RowSettings(rows, len(LOGITS)).choose(LOGITS.expand(count, -1), 0)[0]


def test_splitmix64_gives_its_published_numbers():
    # First outputs of the reference implementation for the state that our seed 0 is mixed to (0).
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    got = (uniforms([0], 0, 3)[0] * 2**32).floor().to(torch.int64).tolist()
    assert got == [value >> 32 for value in expected]


def test_uniforms_are_a_function_of_seed_and_token_only():
    seeds = [3, -1, 2**62, 2**63 - 1, -(2**63)]
    whole = uniforms(seeds, 0, 200)
    assert torch.equal(uniforms(seeds[1:2], 70, 5), whole[1:2, 70:75])
    assert float(whole.min()) > 0
    assert float(whole.max()) < 1
    assert len(set(whole.flatten().tolist())) == whole.numel()


def test_uniforms_are_even_and_uncorrelated_between_seeds_and_tokens():
    numbers = uniforms(range(2000), 0, 50)
    assert abs(float(numbers.mean()) - 0.5) < 0.005
    assert abs(float(numbers.var()) - 1 / 12) < 0.003
    for a, b in ((numbers[:-1], numbers[1:]), (numbers[:, :-1], numbers[:, 1:])):
        pair = torch.stack([a.flatten(), b.flatten()])
        assert abs(float(torch.corrcoef(pair)[0, 1])) < 0.02


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_frequencies_follow_the_tempered_distribution(temperature):
    tokens = draw(20_000, temperature=temperature)
    shares = torch.bincount(tokens, minlength=len(LOGITS)) / len(tokens)
    wanted = (LOGITS / temperature).softmax(-1)
    torch.testing.assert_close(shares, wanted, atol=0.015, rtol=0)


def test_top_k_and_top_p_renormalise_over_what_they_keep():
    for params, kept in (({"top_k": 2}, 2), ({"top_p": 0.9}, 3), ({"top_k": 2, "top_p": 0.99}, 2)):
        tokens = draw(20_000, **params)
        shares = torch.bincount(tokens, minlength=len(LOGITS)) / len(tokens)
        wanted = LOGITS[:kept].softmax(-1)
        torch.testing.assert_close(shares[:kept], wanted, atol=0.015, rtol=0)
        assert float(shares[kept:].sum()) == 0


def test_top_k_one_and_temperature_zero_take_the_best_token():
    assert set(draw(50, top_k=1).tolist()) == {0}
    assert set(draw(50, temperature=0.0).tolist()) == {0}


def test_log_probs_are_tempered_untruncated_and_plain_where_greedy():
    rows = [
        SamplingParams(temperature=0.5, top_k=1),
        SamplingParams(temperature=2.0, top_p=0.01),
        SamplingParams(temperature=0.0),
    ]
    tokens, log_probs = RowSettings(rows, len(LOGITS)).choose(LOGITS.expand(3, -1), 0)
    assert tokens.tolist() == [0, 0, 0]
    wanted = [float((LOGITS / t).log_softmax(-1)[0]) for t in (0.5, 2.0, 1.0)]
    assert log_probs.tolist() == pytest.approx(wanted, abs=1e-6)


def test_settings_of_neighbours_do_not_change_a_row():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(6, 40, generator=generator)
    rows = [
        SamplingParams(seed=1),
        SamplingParams(seed=2, temperature=0.3),
        SamplingParams(seed=3, top_k=5),
        SamplingParams(seed=4, top_p=0.5),
        SamplingParams(seed=5, temperature=0.0),
        SamplingParams(seed=6, temperature=1.3, top_k=7, top_p=0.8),
    ]
    together = RowSettings(rows, 40)
    for step in (0, 63, 64, 200):
        tokens, _ = together.choose(logits, step)
        for i, row in enumerate(rows):
            alone, _ = RowSettings([row], 40).choose(logits[i : i + 1], step)
            assert int(alone) == int(tokens[i])
    together.keep(torch.tensor([1, 5]))
    kept, _ = together.choose(logits[[1, 5]], 200)
    assert kept.tolist() == tokens[[1, 5]].tolist()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-8, 8, width=32), min_size=1, max_size=30),
    st.integers(1, 40),
    st.floats(0.01, 1.0),
)
def test_truncation_keeps_the_shortest_head_of_the_ranking(values, top_k, top_p):
    weights = torch.tensor([values]).softmax(-1)
    got = truncate(weights, torch.tensor([top_k]), torch.tensor([top_p], dtype=torch.float64))[0]
    order = sorted(range(len(values)), key=lambda i: (-float(weights[0, i]), i))
    kept = [i for i in range(len(values)) if got[i] > 0]
    assert sorted(order[: len(kept)]) == kept
    assert 1 <= len(kept) <= top_k
    before_last = math.fsum(float(weights[0, i]) for i in order[: len(kept) - 1])
    assert before_last <= top_p + 1e-6
    if len(kept) < min(top_k, len(values)):
        assert before_last + float(weights[0, order[len(kept) - 1]]) >= top_p - 1e-6


def test_stop_tokens_are_each_rows_own():
    rows = [
        SamplingParams(stop_token_ids=frozenset({3})),
        SamplingParams(stop_token_ids=frozenset({4, 99})),
        SamplingParams(),
    ]
    table = RowSettings(rows, 6)
    assert table.ends(torch.tensor([3, 3, 3])).tolist() == [True, False, False]
    table.keep(torch.tensor([1]))
    assert table.ends(torch.tensor([4])).tolist() == [True]
