"""One turn over real HTTP: tokens as sampled, caps, statuses, an engine that misbehaves."""

from __future__ import annotations

import asyncio
import logging
from argparse import Namespace
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slime_ext import hooks
from slime_ext.host.types import Sample
from slime_ext.rollout import client, engine_counts
from slime_ext.rollout.runtime import Runtime
from tests.fakes.engine import FakeEngine, answer, fake_engine

SAMPLING = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "max_new_tokens": 48}


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with fake_engine(answer([30, 2], {"type": "stop", "matched": 2})) as fake:
        yield fake


def generate(
    runtime: Runtime, engine: FakeEngine, sample: Sample | None = None, **sampling: Any
) -> Sample:
    args = Namespace(
        longrl_recipe=str(runtime.folder / "recipe.toml"),
        sglang_router_ip="127.0.0.1",
        sglang_router_port=engine.port,
    )
    sample = sample or Sample(index=0, group_index=0, metadata={"row": 0, "split": "train"})
    return asyncio.run(hooks.generate(args, sample, SAMPLING | sampling))


def test_ids_and_log_probs_are_kept_as_sampled(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine
) -> None:
    runtime = lab_runtime()
    # 31 and 30 decode to words; a decode-encode round trip is not what is trained on.
    engine.reply = answer([31, 30, 2], {"type": "stop", "matched": 2}, log_prob=-0.25)
    sample = generate(runtime, engine)
    assert sample.tokens == [*runtime.prompt("train", 0), 31, 30, 2]
    assert sample.response_length == 3
    assert sample.rollout_log_probs == [-0.25] * 3
    assert sample.loss_mask == [1, 1, 1]
    assert sample.status is Sample.Status.COMPLETED
    assert sample.metadata["stop"] == "<eos>"
    assert sample.response == runtime.decode([31, 30])
    assert sample.weight_versions == ["7"]


def test_the_request_is_capped_by_the_context(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine
) -> None:
    runtime = lab_runtime()
    prompt = len(runtime.prompt("train", 0))
    generate(runtime, engine, max_new_tokens=10_000)
    sent = engine.received[0]
    assert sent["sampling_params"]["max_new_tokens"] == 256 - prompt
    assert sent["input_ids"] == runtime.prompt("train", 0)
    assert sent["sampling_params"]["stop_token_ids"] == list(runtime.stop_ids)
    assert sent["return_logprob"] is True


def test_the_recipe_may_name_the_tokens_that_end_a_response(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine
) -> None:
    eos = lab_runtime().tokenizer.eos_token_id
    generate(lab_runtime("model.stop_token_ids=[31]"), engine)
    assert engine.received[0]["sampling_params"]["stop_token_ids"] == sorted({31, eos})


def test_siblings_get_different_seeds_and_a_repeat_the_same(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine
) -> None:
    runtime = lab_runtime()
    for index in (0, 1, 0):
        meta = {"row": 0, "split": "train"}
        generate(runtime, engine, Sample(index=index, group_index=0, metadata=meta))
    seeds = [body["sampling_params"]["sampling_seed"] for body in engine.received]
    assert seeds[0] == seeds[2] != seeds[1]


def test_a_cut_response_is_truncated_and_keeps_its_tokens(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine
) -> None:
    engine.reply = answer([30, 31], {"type": "length", "length": 2})
    sample = generate(lab_runtime(), engine)
    assert sample.status is Sample.Status.TRUNCATED
    assert sample.response_length == 2
    assert sample.metadata["stop"] is None


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("The input is longer than the model's context length (256).", "truncated"),
        ("This model's maximum context length is 256 tokens", "truncated"),
        ("context_length_exceeded", "truncated"),
        ("prompt exceeds the context window", "truncated"),
        ("over the maximum allowed length", "truncated"),
        ("unknown sampling parameter", "failed"),
    ],
)
def test_a_refused_request_is_told_apart_by_its_reason(
    lab_runtime: Callable[..., Runtime],
    engine: FakeEngine,
    caplog: pytest.LogCaptureFixture,
    text: str,
    status: str,
) -> None:
    engine.plan.append((400, text))
    engine_counts.take()
    with caplog.at_level(logging.WARNING):
        sample = generate(lab_runtime(), engine)
    assert (text in caplog.text) is (status == "failed")
    assert sample.status.value == status
    assert len(engine.received) == 1
    # Never length 0: one end token that is not trained on.
    assert (sample.response_length, sample.loss_mask, sample.rollout_log_probs) == (1, [0], [0.0])
    assert sample.tokens[-1] == 2


def test_a_lost_connection_is_retried_with_the_same_seed(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine
) -> None:
    engine.plan.extend(["drop", 503])
    sample = generate(lab_runtime(), engine)
    assert sample.status is Sample.Status.COMPLETED
    assert len(engine.received) == 3
    assert len({str(body) for body in engine.received}) == 1


def test_an_engine_that_never_answers_leaves_an_undetermined_sample(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ATTEMPTS", 2)
    runtime = lab_runtime()
    engine.plan.extend(["drop"] * 2)
    sample = generate(runtime, engine)
    assert sample.status is Sample.Status.ABORTED
    args = Namespace(longrl_recipe=str(runtime.folder / "recipe.toml"))
    reward = asyncio.run(hooks.reward(args, sample))
    assert reward != reward  # NaN, never 0.0
    assert sample.metadata["reward_status"] == "aborted:engine_gone"


def test_an_aborted_sample_asks_only_for_what_is_left(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine
) -> None:
    runtime = lab_runtime()
    engine.plan.append(answer([30, 31], {"type": "abort", "message": "Aborted"}, log_prob=-1.0))
    sample = generate(runtime, engine)
    assert sample.status is Sample.Status.ABORTED
    sample = generate(runtime, engine, sample)
    assert engine.received[1]["input_ids"] == [*runtime.prompt("train", 0), 30, 31]
    assert engine.received[1]["sampling_params"]["max_new_tokens"] == 46
    assert sample.tokens[-4:] == [30, 31, 30, 2]
    assert sample.rollout_log_probs == [-1.0, -1.0, -0.5, -0.5]
    assert sample.response_length == 4
    assert sample.status is Sample.Status.COMPLETED


def test_a_prompt_over_the_cap_is_truncated_without_a_request(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine
) -> None:
    sample = generate(lab_runtime("data.max_prompt_tokens=20"), engine)
    assert engine.received == []
    assert sample.status is Sample.Status.TRUNCATED
    assert sample.metadata["finish"] == "prompt_too_long"
    assert (sample.response_length, sample.loss_mask, len(sample.tokens)) == (1, [0], 3)
