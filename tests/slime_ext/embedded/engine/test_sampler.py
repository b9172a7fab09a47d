"""Waves: the same responses as one by one, whatever they share a batch with."""

from __future__ import annotations

import random

import pytest
import torch

from slime_ext.embedded.engine import sampler
from slime_ext.embedded.engine.request import Completion, Request
from slime_ext.embedded.engine.sampler import NotFiniteError, Wave

PROMPTS = [[5, 6, 7], list(range(3, 43)), list(range(10, 55)), [9] * 45]


def completions(model, requests: list[Request]) -> list[Completion]:
    Wave(model, requests, "7").run()
    return [request.answer.result(timeout=0) for request in requests]


@pytest.fixture
def mixed(ask):
    """mixed() -> fresh requests over four prompts, 1 to 5 each, of every kind of setting."""

    def make() -> list[Request]:
        settings = [
            {"temperature": 1.0},
            {"temperature": 0.0},
            {"temperature": 0.7, "top_p": 0.9},
            {"top_k": 4, "max_new_tokens": 70},
            {"temperature": 1.5, "stop_token_ids": frozenset({2, 17})},
        ]
        plan = [(0, 5), (1, 1), (2, 3), (3, 2)]
        return [
            ask(
                PROMPTS[prompt],
                rid=f"{prompt}-{i}",
                **{"max_new_tokens": 20 + 3 * i, "seed": 10 * prompt + i, **settings[i]},
            )
            for prompt, count in plan
            for i in range(count)
        ]

    return make


def test_a_mixed_wave_equals_one_by_one(decoder, mixed):
    together = completions(decoder, mixed())
    for request, ours in zip(mixed(), together, strict=True):
        alone = completions(decoder, [request])[0]
        assert ours.output_ids == alone.output_ids
        assert ours.log_probs == pytest.approx(alone.log_probs, abs=1e-5)
        assert ours.finish_reason == alone.finish_reason


def test_arrival_order_changes_no_bit(decoder, mixed):
    first, second = mixed(), mixed()
    shuffled = random.Random(0).sample(second, len(second))
    Wave(decoder, first).run()
    Wave(decoder, shuffled).run()
    for a, b in zip(first, second, strict=True):
        assert a.answer.result().output_ids == b.answer.result().output_ids
        assert a.answer.result().log_probs == b.answer.result().log_probs


def test_log_probs_match_transformers(make_model, decoder, ask):
    _, model = make_model()
    for params in ({}, {"temperature": 0.6}, {"temperature": 0.0}, {"top_k": 3}):
        request = ask(PROMPTS[0], max_new_tokens=40, seed=4, **params)
        result = completions(decoder, [request])[0]
        tokens = torch.tensor([PROMPTS[0] + result.output_ids])
        with torch.no_grad():
            logits = model(tokens).logits[0, len(PROMPTS[0]) - 1 : -1]
        temperature = params.get("temperature", 1.0) or 1.0
        wanted = (logits / temperature).log_softmax(-1)
        wanted = wanted.gather(1, torch.tensor(result.output_ids)[:, None])[:, 0]
        assert result.log_probs == pytest.approx(wanted.tolist(), abs=1e-4)


def test_prompts_are_computed_once(decoder, ask):
    requests = [ask(PROMPTS[i // 3], seed=i, max_new_tokens=2) for i in range(6)]
    wave = Wave(decoder, requests)
    assert wave._cache.prompt.shape[2] == 2
    wave.run()
    cached = [request.answer.result().cached_tokens for request in requests]
    assert cached == [0, 3, 3, 0, 40, 40]


def test_a_stop_token_ends_the_response_and_is_its_last_token(decoder, ask):
    free = completions(decoder, [ask(PROMPTS[0], seed=3, max_new_tokens=30)])[0]
    stop = free.output_ids[12]
    at = free.output_ids.index(stop)
    request = ask(PROMPTS[0], seed=3, max_new_tokens=30, stop_token_ids=frozenset({stop}))
    result = completions(decoder, [request])[0]
    assert result.output_ids == free.output_ids[: at + 1]
    assert len(result.log_probs) == at + 1
    assert result.finish_reason == {"type": "stop", "matched": stop}
    assert free.finish_reason == {"type": "length", "length": 30}


def test_a_stop_token_on_the_last_place_counts_as_stop(decoder, ask):
    free = completions(decoder, [ask(PROMPTS[0], seed=3, max_new_tokens=1)])[0]
    stop = frozenset(free.output_ids)
    request = ask(PROMPTS[0], seed=3, max_new_tokens=1, stop_token_ids=stop)
    assert completions(decoder, [request])[0].finish_reason["type"] == "stop"


def test_finished_rows_leave_the_batch(decoder, ask, monkeypatch):
    rows: list[int] = []
    decode = type(decoder).decode

    def counted(self, tokens, cache):
        rows.append(len(tokens))
        return decode(self, tokens, cache)

    monkeypatch.setattr(type(decoder), "decode", counted)
    requests = [ask(PROMPTS[i % 4], seed=i, max_new_tokens=5 * (i + 1)) for i in range(16)]
    needed = sum(request.params.max_new_tokens - 1 for request in requests)
    results = completions(decoder, requests)
    assert [len(r.output_ids) for r in results] == [5 * (i + 1) for i in range(16)]
    assert rows[-1] == 1
    # At most an eighth of the batch idles between two compactions.
    assert needed <= sum(rows) <= needed / (1 - sampler._IDLE_SHARE)


def test_an_abort_returns_what_was_sampled(decoder, ask):
    requests = [ask(PROMPTS[0], rid=str(i), seed=i, max_new_tokens=40) for i in range(3)]
    whole = completions(decoder, [ask(PROMPTS[0], seed=1, max_new_tokens=40)])[0]
    polls = 0

    def asked() -> bool:
        nonlocal polls
        polls += 1
        requests[1].aborted = polls == 10
        return polls == 10

    Wave(decoder, requests).run(asked)
    result = requests[1].answer.result()
    assert result.finish_reason["type"] == "abort"
    assert result.output_ids == whole.output_ids[:10]
    assert len(result.log_probs) == 10
    assert [len(requests[i].answer.result().output_ids) for i in (0, 2)] == [40, 40]


def test_broken_weights_are_an_error_and_not_a_response(decoder, ask):
    decoder._weights.norm[0] = float("nan")
    request = ask(PROMPTS[0], max_new_tokens=4)
    Wave(decoder, [request], "12").run()
    with pytest.raises(NotFiniteError, match="weight version 12"):
        request.answer.result(timeout=0)
