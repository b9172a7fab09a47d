"""Real SGLang on CPU: the same numbers and the same answers as the builtin engine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from slime_ext.embedded.engine.cache import WaveCache
from slime_ext.embedded.engine.model import Decoder
from slime_ext.embedded.engine.process import EngineDownError
from slime_ext.embedded.engine.server import build_app
from slime_ext.embedded.sglang.process import SglangProcess, sglang_installed

CONTEXT, EOS = 256, 2
PROMPTS = [[5, 6, 7], [9] * 20, list(range(3, 80))]

needs_sglang = pytest.mark.skipif(
    not sglang_installed(), reason="no .venv-sglang; run `make sglang` to test real SGLang"
)


def save_model(folder: Path, seed: int) -> Qwen3ForCausalLM:
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        eos_token_id=EOS,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    )
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.uniform_(0.5, 1.5)
            else:
                weight.normal_(std=0.15)
    model.eval().save_pretrained(folder)
    return model


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> list[tuple[Path, Qwen3ForCausalLM]]:
    """Two folders of one shape with different weights."""
    torch.set_num_threads(1)
    folders = [tmp_path_factory.mktemp("model") for _ in range(2)]
    return [(folder, save_model(folder, seed)) for seed, folder in enumerate(folders)]


@pytest.fixture(scope="module")
def sglang(models, tmp_path_factory) -> Iterator[SglangProcess]:
    log = tmp_path_factory.mktemp("log") / "sglang.log"
    with SglangProcess(models[0][0], batch=16, log=log) as process:
        yield process


def generate(url: str, prompt: list[int], **params: Any) -> dict[str, Any]:
    body = {"input_ids": prompt, "sampling_params": params, "return_logprob": True}
    answer: dict[str, Any] = httpx.post(url + "/generate", json=body, timeout=60).json()
    return answer


def by_transformers(model: Qwen3ForCausalLM, prompt: list[int], output: list[int]) -> torch.Tensor:
    """Logits each output token was drawn from, [n, vocab]."""
    with torch.no_grad():
        return model(torch.tensor([prompt + output])).logits[0, len(prompt) - 1 : -1]


def by_engine(folder: Path, prompt: list[int], output: list[int]) -> torch.Tensor:
    """The same by the builtin engine, token by token."""
    decoder = Decoder(folder)
    cache = WaveCache(decoder.shape, [len(prompt)], [0])
    rows = [decoder.prefill([torch.tensor(prompt)], cache)]
    rows += [decoder.decode(torch.tensor([token]), cache) for token in output[:-1]]
    return torch.cat(rows)


@needs_sglang
@pytest.mark.timeout(900)
@pytest.mark.parametrize("temperature", [0.0, 1.0, 0.7])
def test_log_probs_agree_with_our_engine_and_transformers(sglang, models, temperature):
    folder, model = models[0]
    for prompt in PROMPTS:
        params = {"temperature": temperature, "max_new_tokens": 40, "ignore_eos": True}
        answer = generate(sglang.url, prompt, **params)
        output = answer["output_ids"]
        served = torch.tensor([lp for lp, _, _ in answer["meta_info"]["output_token_logprobs"]])
        assert len(output) == 40
        for logits in (by_transformers(model, prompt, output), by_engine(folder, prompt, output)):
            wanted = (logits / (temperature or 1.0)).log_softmax(-1)
            wanted = wanted.gather(1, torch.tensor(output)[:, None])[:, 0]
            torch.testing.assert_close(served, wanted, atol=1e-4, rtol=0)


def ours(folder: Path, bodies: list[Any]) -> list[httpx.Response]:
    """What the builtin engine answers to the same bodies."""

    async def post_all() -> list[httpx.Response]:
        app = build_app(folder, batch=16, weight_version="0")
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://engine") as client:
            answers = [await client.post("/generate", json=body) for body in bodies]
        app.state.scheduler.stop()
        return answers

    return asyncio.run(post_all())


@needs_sglang
@pytest.mark.timeout(900)
def test_answers_have_the_same_form_and_the_same_greedy_tokens(sglang, models):
    folder, _ = models[0]
    greedy = {"temperature": 0, "max_new_tokens": 30}
    free = generate(sglang.url, PROMPTS[0], ignore_eos=True, **greedy)["output_ids"]
    stop = {"stop_token_ids": [free[-1]], **greedy}
    all_params: list[dict[str, Any]] = [
        greedy,
        stop,
        {"ignore_eos": True, **stop},
        {"top_k": 1, "max_new_tokens": 9, "sampling_seed": 3},
        {"max_new_tokens": 0, "temperature": 0},
        {"temperature": -1},
        {"top_p": 0},
        {"max_new_tokens": CONTEXT},
    ]
    bodies = [
        {"input_ids": PROMPTS[0], "sampling_params": params, "return_logprob": True, "rid": f"{i}"}
        for i, params in enumerate(all_params)
    ]
    bodies.append({"input_ids": [5] * CONTEXT, "sampling_params": {}})
    for body, mine in zip(bodies, ours(folder, bodies), strict=True):
        theirs = httpx.post(sglang.url + "/generate", json=body, timeout=60)
        assert mine.status_code == theirs.status_code, body
        if mine.status_code == 200:
            a, b = mine.json(), theirs.json()
            assert a["output_ids"] == b["output_ids"], body
            assert set(a["meta_info"]) <= set(b["meta_info"])
            for key in ("id", "finish_reason", "completion_tokens", "weight_version"):
                assert a["meta_info"][key] == b["meta_info"][key], body
        else:
            assert theirs.json()["error"]["message"]
            assert mine.json()["error"]["message"]


@needs_sglang
@pytest.mark.timeout(900)
def test_weights_pushed_from_disk_change_the_log_probs(sglang, models):
    (old, _), (new, model) = models
    params = {"temperature": 0, "max_new_tokens": 20, "ignore_eos": True}
    before = generate(sglang.url, PROMPTS[0], **params)
    sglang.update_weights(new, 5)
    after = generate(sglang.url, PROMPTS[0], **params)
    output = after["output_ids"]
    wanted = by_transformers(model, PROMPTS[0], output).log_softmax(-1)
    wanted = wanted.gather(1, torch.tensor(output)[:, None])[:, 0]
    served = torch.tensor([lp for lp, _, _ in after["meta_info"]["output_token_logprobs"]])
    torch.testing.assert_close(served, wanted, atol=1e-4, rtol=0)
    assert after["meta_info"]["weight_version"] == "5"
    assert output != before["output_ids"]
    with pytest.raises(ValueError, match="refused"):
        sglang.update_weights(new / "nowhere", 6)
    sglang.update_weights(old, 7)
    assert generate(sglang.url, PROMPTS[0], **params)["output_ids"] == before["output_ids"]
    assert sglang.cpu_seconds() > 1


def test_a_missing_installation_says_what_to_run(models, tmp_path, monkeypatch):
    monkeypatch.setenv("LONGRL_SGLANG_VENV", str(tmp_path / "venv"))
    assert not sglang_installed()
    process = SglangProcess(models[0][0], batch=16, log=tmp_path / "log")
    with pytest.raises(EngineDownError, match="run `make sglang`"):
        process.start()
    assert not process.alive()
