"""One prompt, one response: the generate hook's work for single-turn recipes.

One design choice: the ids and log-probs the engine sampled are kept as they are and never
re-encoded (decoding and encoding is no bijection), and no sample ever has a response of length 0,
because hosts index responses with `tokens[-length:]`.
"""

from __future__ import annotations

from typing import Any

import httpx

from slime_ext.data.budget import PromptTooLong
from slime_ext.host.types import Sample
from slime_ext.rollout.affinity import post_for_group
from slime_ext.rollout.client import EngineGoneError
from slime_ext.rollout.engine_counts import note_refusal
from slime_ext.rollout.runtime import Runtime, Split
from slime_ext.rollout.together import generate_together

CONTEXT_TOO_LONG = (
    "longer than the model's context length",
    "maximum context length",
    "context_length_exceeded",
    "exceeds the context window",
    "maximum allowed length",
)
"""How SGLang, OpenAI, vLLM and proxies in front of them say that a prompt does not fit."""


async def single_turn(
    runtime: Runtime, args: Any, sample: Sample, sampling: dict[str, Any], evaluation: bool
) -> Sample:
    """Fill `sample` with one response sampled by the engine behind the router.

    An aborted sample that already holds tokens asks only for what is left. Never raises for what a
    server answers: the outcome is in `sample.status`.
    """
    split: Split = sample.metadata.get("split", "eval" if evaluation else "train")
    try:
        rendered = runtime.rendered(split, sample.metadata["row"])
    except PromptTooLong:
        # A row that was not looked at before the run. Hosts want some prompt: two end tokens.
        sample.tokens = [runtime.stop_ids[0]] * 2
        return _finish(runtime, sample, sample.tokens, Sample.Status.TRUNCATED, "prompt_too_long")
    prompt = rendered.ids
    kept = sample.tokens[len(prompt) :] if sample.status == Sample.Status.ABORTED else []
    room = min(
        int(sampling["max_new_tokens"]), runtime.recipe.rollout.context_tokens - len(prompt)
    ) - len(kept)
    if not kept:
        sample.tokens, sample.rollout_log_probs = list(prompt), []
    if room <= 0:
        return _finish(runtime, sample, prompt, Sample.Status.TRUNCATED, "length")
    payload = {
        "input_ids": prompt + kept if kept else rendered.json,
        "sampling_params": {
            **sampling,
            "max_new_tokens": room,
            "stop_token_ids": list(runtime.stop_ids),
            "sampling_seed": runtime.sampling_seed(split, sample.index, len(kept)),
        },
        "return_logprob": True,
    }
    try:
        answer = await _ask(runtime, args, sample, payload)
    except EngineGoneError:
        return _finish(runtime, sample, prompt, Sample.Status.ABORTED, "engine_gone")
    except httpx.HTTPStatusError as error:
        code, text = error.response.status_code, error.response.text
        too_long = any(phrase in text for phrase in CONTEXT_TOO_LONG)
        status = Sample.Status.TRUNCATED if too_long else Sample.Status.FAILED
        if not too_long:
            note_refusal(code, text)
        return _finish(runtime, sample, prompt, status, f"http_{code}")
    _append(sample, answer)
    kind = answer["meta_info"]["finish_reason"]["type"]
    status = {"stop": Sample.Status.COMPLETED, "length": Sample.Status.TRUNCATED}.get(
        kind, Sample.Status.ABORTED
    )
    return _finish(runtime, sample, prompt, status, kind)


async def _ask(runtime: Runtime, args: Any, sample: Sample, payload: dict[str, Any]) -> Any:
    recipe, meta = runtime.recipe, sample.metadata
    timeout_s = recipe.rollout.request_timeout_s
    if getattr(args, "longrl_batch_requests", False):
        url = f"http://{args.sglang_router_ip}:{args.sglang_router_port}/generate"
        return await generate_together(url, payload, timeout_s)
    number = meta["row"] if sample.group_index is None else sample.group_index
    group = f"{recipe.name}/{recipe.seed}/{meta.get('split', 'train')}/{number}"
    return await post_for_group(args, group, payload, timeout_s)


def _append(sample: Sample, answer: dict[str, Any]) -> None:
    """Add the sampled ids and log-probs of one answer of /generate."""
    sampled = answer["meta_info"]["output_token_logprobs"]
    sample.tokens = sample.tokens + [int(token) for _, token, *_ in sampled]
    log_probs = [float(log_prob) for log_prob, *_ in sampled]
    sample.rollout_log_probs = (sample.rollout_log_probs or []) + log_probs
    sample.weight_versions.append(str(answer["meta_info"].get("weight_version", "")))
    for count in ("prompt_tokens", "cached_tokens"):
        sample.metadata[count] = answer["meta_info"].get(count)


def _finish(
    runtime: Runtime, sample: Sample, prompt: list[int], status: Sample.Status, finish: str
) -> Sample:
    """Set text, mask and status from the tokens collected so far."""
    ids = sample.tokens[len(prompt) :]
    mask = [1] * len(ids)
    if not ids:
        sample.tokens = [*prompt, runtime.stop_ids[0]]
        sample.rollout_log_probs, mask = [0.0], [0]
    stop = ids[-1] if ids and status is Sample.Status.COMPLETED else None
    stop = stop if stop in runtime.stop_ids else None
    sample.response = runtime.decode(ids[:-1] if stop is not None else ids)
    sample.response_length = len(mask)
    sample.loss_mask = mask
    sample.status = status
    sample.metadata["thinking_tokens"] = runtime.thinking_tokens(ids)
    sample.metadata["finish"] = finish
    sample.metadata["stop"] = None if stop is None else runtime.decode([stop])
    return sample
