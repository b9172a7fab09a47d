"""SGLang's /generate as JSON: bodies to requests, completions to answers.

One design choice: a field that would change the response and is not supported is refused by name; a
field that only concerns text, logging or routing is accepted and has no effect, because routers and
slime send several of those with every request.
"""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import dataclass
from typing import Any

import torch

from slime_ext.embedded.engine.request import (
    WHOLE_VOCABULARY,
    Completion,
    Request,
    SamplingParams,
)

_TOP_KEYS = frozenset({"input_ids", "sampling_params", "return_logprob", "rid"})
_NO_EFFECT = frozenset(
    {
        *("model", "priority", "extra_key", "routing_key", "background", "data_parallel_rank"),
        *("log_metrics", "no_logs", "return_bytes", "return_text_in_logprobs", "return_entropy"),
    }
)
_NEUTRAL_TOP: dict[str, tuple[Any, ...]] = {"logprob_start_len": (-1,), "top_logprobs_num": (0,)}
_PARAM_KEYS = frozenset(
    {
        *("temperature", "top_p", "top_k", "max_new_tokens"),
        *("stop_token_ids", "sampling_seed", "ignore_eos"),
    }
)
_PARAM_NO_EFFECT = frozenset(
    {"skip_special_tokens", "spaces_between_special_tokens", "no_stop_trim", "stream_interval"}
)
_NEUTRAL_PARAMS: dict[str, tuple[Any, ...]] = {
    "repetition_penalty": (1,),
    "n": (1,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "min_p": (0,),
    "min_new_tokens": (0,),
}


class BadRequestError(ValueError):
    """A body that cannot be served; the message says which field and what to send instead."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the served model allows."""

    vocab_size: int
    context_length: int
    eos_token_ids: frozenset[int]
    """Tokens that end a response unless `ignore_eos`."""


@dataclass(slots=True)
class GenerateCall:
    """One parsed body: `batched` says whether the answer is a list."""

    requests: list[Request]
    batched: bool
    return_logprob: bool


def parse_generate(body: Any, limits: Limits) -> GenerateCall:
    """The requests of a /generate body. Raises BadRequestError."""
    if not isinstance(body, dict):
        raise BadRequestError("the body must be a JSON object with input_ids and sampling_params")
    _refuse(body, _TOP_KEYS | _NO_EFFECT, _NEUTRAL_TOP, "")
    prompts = body.get("input_ids")
    if not isinstance(prompts, list) or not prompts:
        raise BadRequestError(
            "input_ids must be a non-empty list of token ids, or a list of such lists; this engine "
            "has no tokenizer, so `text` cannot be sent"
        )
    batched = isinstance(prompts[0], list)
    if not batched:
        prompts = [prompts]
    count = len(prompts)
    raw_params = _spread(body.get("sampling_params") or {}, count, batched, "sampling_params")
    rids = _spread(body.get("rid"), count, batched, "rid")
    if batched and isinstance(body.get("rid"), str):
        rids = [f"{body['rid']}_{i}" for i in range(count)]
    requests = []
    for raw_prompt, raw, rid in zip(prompts, raw_params, rids, strict=True):
        prompt = _prompt(raw_prompt, limits)
        params = _params(raw, len(prompt), limits)
        if rid is not None and not isinstance(rid, str):
            raise BadRequestError(f"rid must be a string, not {rid!r}")
        requests.append(Request(rid or secrets.token_hex(16), prompt, params))
    return GenerateCall(requests, batched, bool(body.get("return_logprob")))


def answer(request: Request, completion: Completion, return_logprob: bool) -> dict[str, Any]:
    """The JSON object SGLang gives for one finished request."""
    meta: dict[str, Any] = {
        "id": request.rid,
        "finish_reason": completion.finish_reason,
        "prompt_tokens": len(request.prompt),
        "completion_tokens": len(completion.output_ids),
        "cached_tokens": completion.cached_tokens,
        "weight_version": completion.weight_version,
        "e2e_latency": time.monotonic() - request.arrived,
    }
    if return_logprob:
        meta["output_token_logprobs"] = [
            (log_prob, token, None)
            for log_prob, token in zip(completion.log_probs, completion.output_ids, strict=True)
        ]
    return {"output_ids": completion.output_ids, "meta_info": meta}


def _refuse(
    given: dict[str, Any], known: frozenset[str], neutral: dict[str, tuple[Any, ...]], prefix: str
) -> None:
    for key, value in given.items():
        unset = value is None or value is False or value in ("", [], {})
        if unset or key in known or value in neutral.get(key, ()):
            continue
        raise BadRequestError(
            f"{prefix}{key} = {value!r} is not supported by this engine; leave it out"
        )


def _spread(value: Any, count: int, batched: bool, name: str) -> list[Any]:
    """One value per prompt: a list in a batched call is per prompt, anything else for all."""
    if not (batched and isinstance(value, list)):
        return [value] * count
    if len(value) != count:
        raise BadRequestError(f"{name} has {len(value)} entries for {count} prompts")
    return value


def _prompt(ids: Any, limits: Limits) -> torch.Tensor:
    if not isinstance(ids, list) or not ids or not all(type(i) is int for i in ids):
        raise BadRequestError("input_ids must hold integers only, at least one per prompt")
    for extreme in (min(ids), max(ids)):
        if not 0 <= extreme < limits.vocab_size:
            raise BadRequestError(
                f"input_ids holds {extreme}; this model's ids are 0 to {limits.vocab_size - 1}"
            )
    return torch.tensor(ids)


def _params(raw: Any, prompt_tokens: int, limits: Limits) -> SamplingParams:
    if not isinstance(raw, dict):
        raise BadRequestError("sampling_params must be an object, or a list of one per prompt")
    _refuse(raw, _PARAM_KEYS | _PARAM_NO_EFFECT, _NEUTRAL_PARAMS, "sampling_params.")
    # SGLang takes null as "not given".
    given = {key: value for key, value in raw.items() if value is not None}
    new = _integer(given, "max_new_tokens", 128, 0, 2**31 - 1)
    _check_length(prompt_tokens, new, limits.context_length)
    top_k = _integer(given, "top_k", WHOLE_VOCABULARY, -1, 2**62)
    if top_k == 0:
        raise BadRequestError("sampling_params.top_k must be -1 (off) or at least 1, not 0")
    # In SGLang ignore_eos also switches stop_token_ids off.
    stops = frozenset() if given.get("ignore_eos") else _stops(given, limits)
    seed = _integer(given, "sampling_seed", secrets.randbits(62), -(2**63), 2**63 - 1)
    return SamplingParams(
        temperature=_number(given, "temperature", 0.0, math.inf),
        top_p=_number(given, "top_p", 0.0, 1.0, zero=False),
        top_k=top_k,
        max_new_tokens=new,
        stop_token_ids=stops,
        seed=seed,
    )


def _check_length(prompt_tokens: int, new: int, context: int) -> None:
    """Refused, never cut: a prompt that lost its end would be answered without its question."""
    if prompt_tokens >= context:
        raise BadRequestError(
            f"The input ({prompt_tokens} tokens) is longer than the model's context length "
            f"({context} tokens)."
        )
    if prompt_tokens + new > context:
        raise BadRequestError(
            f"The input ({prompt_tokens} tokens) with max_new_tokens = {new} is longer than the "
            f"model's context length ({context} tokens); send max_new_tokens <= "
            f"{context - prompt_tokens}."
        )


def _stops(given: dict[str, Any], limits: Limits) -> frozenset[int]:
    stops = given.get("stop_token_ids", [])
    if not isinstance(stops, list) or not all(type(i) is int and i >= 0 for i in stops):
        raise BadRequestError(
            f"sampling_params.stop_token_ids must be a list of token ids, not {stops!r}"
        )
    return limits.eos_token_ids | frozenset(stops)


def _integer(given: dict[str, Any], name: str, default: int, low: int, high: int) -> int:
    value = given.get(name, default)
    if type(value) is not int or not low <= value <= high:
        raise BadRequestError(
            f"sampling_params.{name} must be an integer in [{low}, {high}], not {value!r}"
        )
    return value


def _number(given: dict[str, Any], name: str, low: float, high: float, zero: bool = True) -> float:
    value = given.get(name, 1.0)
    ok = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not ok or not low <= value <= high or (value == 0 and not zero):
        bracket = "[" if zero else "("
        raise BadRequestError(
            f"sampling_params.{name} must be a number in {bracket}{low:g}, {high:g}], not {value!r}"
        )
    return float(value)
