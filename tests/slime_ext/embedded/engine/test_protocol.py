"""Bodies of /generate: what is taken, what is refused, what is answered."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from slime_ext.embedded.engine.protocol import BadRequestError, Limits, answer, parse_generate
from slime_ext.embedded.engine.request import Completion

LIMITS = Limits(vocab_size=61, context_length=512, eos_token_ids=frozenset({2}))


def test_defaults_are_sglangs():
    call = parse_generate({"input_ids": [3, 4]}, LIMITS)
    (request,) = call.requests
    assert torch.equal(request.prompt, torch.tensor([3, 4]))
    assert (request.params.temperature, request.params.top_p, request.params.top_k) == (1, 1, -1)
    assert request.params.max_new_tokens == 128
    assert request.params.stop_token_ids == {2}
    assert request.rid
    assert not call.batched
    assert not call.return_logprob


def test_requests_without_a_seed_get_different_ones():
    seeds = {parse_generate({"input_ids": [3]}, LIMITS).requests[0].params.seed for _ in range(20)}
    assert len(seeds) == 20


def test_every_parameter_is_read():
    params = {
        "temperature": 0,
        "top_p": 0.5,
        "top_k": 7,
        "max_new_tokens": 9,
        "stop_token_ids": [5, 6],
        "sampling_seed": -(2**63),
    }
    request = parse_generate({"input_ids": [3], "sampling_params": params}, LIMITS).requests[0]
    read = request.params
    assert read.greedy
    assert (read.top_p, read.top_k, read.max_new_tokens, read.seed) == (0.5, 7, 9, -(2**63))
    assert read.stop_token_ids == {2, 5, 6}


def test_ignore_eos_switches_all_stops_off_as_in_sglang():
    params = {"ignore_eos": True, "stop_token_ids": [5]}
    request = parse_generate({"input_ids": [3], "sampling_params": params}, LIMITS).requests[0]
    assert request.params.stop_token_ids == frozenset()


def test_a_batched_body_has_one_request_a_prompt():
    body = {
        "input_ids": [[3], [4, 5]],
        "sampling_params": [{"sampling_seed": 1}, {"sampling_seed": 2}],
        "rid": ["a", "b"],
        "return_logprob": True,
    }
    call = parse_generate(body, LIMITS)
    assert call.batched
    assert call.return_logprob
    assert [(r.rid, len(r.prompt), r.params.seed) for r in call.requests] == [
        ("a", 1, 1),
        ("b", 2, 2),
    ]
    shared = parse_generate({"input_ids": [[3], [4]], "sampling_params": {"top_k": 3}}, LIMITS)
    assert [r.params.top_k for r in shared.requests] == [3, 3]


def test_what_routers_and_slime_send_beside_is_taken():
    body: dict[str, Any] = {
        "input_ids": [3],
        "model": None,
        "stream": False,
        "log_metrics": True,
        "return_hidden_states": False,
        "logprob_start_len": -1,
        "image_data": None,
        "sampling_params": {
            "stop": None,
            "skip_special_tokens": False,
            "no_stop_trim": True,
            "spaces_between_special_tokens": False,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "n": 1,
            "temperature": None,
        },
    }
    assert parse_generate(body, LIMITS).requests[0].params.temperature == 1.0


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "JSON object"),
        ({}, "input_ids"),
        ({"text": "hello"}, "text = 'hello'"),
        ({"input_ids": []}, "non-empty"),
        ({"input_ids": [[]]}, "at least one per prompt"),
        ({"input_ids": [1.5]}, "integers only"),
        ({"input_ids": [True]}, "integers only"),
        ({"input_ids": ["3"]}, "integers only"),
        ({"input_ids": [[3], 4]}, "integers only"),
        ({"input_ids": [61]}, "holds 61; this model's ids are 0 to 60"),
        ({"input_ids": [3, -1]}, "holds -1"),
        ({"input_ids": [3], "rid": 7}, "rid must be a string"),
        ({"input_ids": [[3], [4]], "rid": ["a"]}, "rid has 1 entries for 2 prompts"),
        ({"input_ids": [3], "stream": True}, "stream = True"),
        ({"input_ids": [3], "logprob_start_len": 0}, "logprob_start_len = 0"),
        ({"input_ids": [3], "sampling_params": 3}, "sampling_params must be an object"),
        ({"input_ids": [3], "sampling_params": {"tempperature": 1}}, "tempperature"),
        ({"input_ids": [3], "sampling_params": {"stop": ["x"]}}, "sampling_params.stop"),
        ({"input_ids": [3], "sampling_params": {"min_p": 0.1}}, "min_p"),
        ({"input_ids": [3], "sampling_params": {"n": 2}}, "sampling_params.n = 2"),
        ({"input_ids": [3], "sampling_params": {"temperature": -1}}, "temperature"),
        ({"input_ids": [3], "sampling_params": {"temperature": "1"}}, "temperature"),
        ({"input_ids": [3], "sampling_params": {"top_p": 0}}, "top_p"),
        ({"input_ids": [3], "sampling_params": {"top_p": 1.01}}, "top_p"),
        ({"input_ids": [3], "sampling_params": {"top_k": 0}}, "top_k"),
        ({"input_ids": [3], "sampling_params": {"top_k": 2.0}}, "top_k"),
        ({"input_ids": [3], "sampling_params": {"max_new_tokens": -1}}, "max_new_tokens"),
        ({"input_ids": [3], "sampling_params": {"sampling_seed": 2**63}}, "sampling_seed"),
        ({"input_ids": [3], "sampling_params": {"stop_token_ids": 5}}, "stop_token_ids"),
        ({"input_ids": [3], "sampling_params": {"stop_token_ids": [-5]}}, "stop_token_ids"),
    ],
)
def test_bad_bodies_name_the_field(body, message):
    with pytest.raises(BadRequestError) as caught:
        parse_generate(body, LIMITS)
    assert message in str(caught.value)


@pytest.mark.parametrize(("prompt", "new"), [(512, 1), (500, 13), (600, 0)])
def test_requests_beyond_the_context_are_refused_in_sglangs_words(prompt, new):
    body = {"input_ids": [3] * prompt, "sampling_params": {"max_new_tokens": new}}
    with pytest.raises(BadRequestError, match="is longer than the model's context length"):
        parse_generate(body, LIMITS)


def test_the_whole_context_can_be_used():
    body = {"input_ids": [3] * 500, "sampling_params": {"max_new_tokens": 12}}
    assert parse_generate(body, LIMITS).requests[0].params.max_new_tokens == 12


def test_the_answer_has_sglangs_shape():
    request = parse_generate({"input_ids": [3, 4, 5], "rid": "x"}, LIMITS).requests[0]
    completion = Completion([7, 2], [-0.5, -1.5], {"type": "stop", "matched": 2}, 3, "11")
    got = answer(request, completion, return_logprob=True)
    meta = got["meta_info"]
    assert got["output_ids"] == [7, 2]
    assert meta.pop("e2e_latency") >= 0
    assert meta == {
        "id": "x",
        "finish_reason": {"type": "stop", "matched": 2},
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "cached_tokens": 3,
        "weight_version": "11",
        "output_token_logprobs": [(-0.5, 7, None), (-1.5, 2, None)],
    }
    assert "output_token_logprobs" not in answer(request, completion, False)["meta_info"]
