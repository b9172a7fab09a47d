"""The application's endpoints, called without a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest
import torch
from starlette.applications import Starlette

from slime_ext.embedded.engine.server import build_app, eos_token_ids

LONG = {"input_ids": [5, 6], "sampling_params": {"max_new_tokens": 400, "ignore_eos": True}}


@pytest.fixture
async def app(folder) -> AsyncIterator[Starlette]:
    built = build_app(folder, batch=16, weight_version="3")
    yield built
    built.state.scheduler.stop()


@pytest.fixture
async def client(app) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://engine:1") as made:
        yield made


async def running(client: httpx.AsyncClient, count: int) -> None:
    for _ in range(3000):
        loads = (await client.get("/v1/loads")).json()["loads"]
        if loads[0]["num_running_reqs"] == count:
            return
        await asyncio.sleep(0.001)
    raise AssertionError(f"{count} requests never ran at the same time: {loads}")


@pytest.fixture
def slow_steps(app, monkeypatch):
    """Make waves long enough to be interrupted: 10 ms a token."""
    import time

    from slime_ext.embedded.engine.model import Decoder

    decode = Decoder.decode

    def delayed(self, tokens, cache):
        time.sleep(0.01)
        return decode(self, tokens, cache)

    monkeypatch.setattr(Decoder, "decode", delayed)


async def test_generate_answers_in_sglangs_shape(client, make_model):
    _, model = make_model()
    body = {
        "input_ids": [5, 6, 7],
        "sampling_params": {"max_new_tokens": 6, "sampling_seed": 1, "ignore_eos": True},
        "return_logprob": True,
        "rid": "one",
    }
    got = (await client.post("/generate", json=body)).json()
    meta = got["meta_info"]
    assert meta["id"] == "one"
    assert meta["finish_reason"] == {"type": "length", "length": 6}
    assert (meta["prompt_tokens"], meta["completion_tokens"], meta["cached_tokens"]) == (3, 6, 0)
    assert meta["weight_version"] == "3"
    assert [triple[1:] for triple in meta["output_token_logprobs"]] == [
        [token, None] for token in got["output_ids"]
    ]
    with torch.no_grad():
        logits = model(torch.tensor([[5, 6, 7, *got["output_ids"]]])).logits[0, 2:-1]
    wanted = logits.log_softmax(-1).gather(1, torch.tensor(got["output_ids"])[:, None])[:, 0]
    ours = [triple[0] for triple in meta["output_token_logprobs"]]
    assert ours == pytest.approx(wanted.tolist(), abs=1e-4)
    assert (await client.post("/generate", json=body)).json()["output_ids"] == got["output_ids"]


async def test_a_batched_call_equals_single_calls(client):
    params = [{"max_new_tokens": 9, "sampling_seed": seed} for seed in range(4)]
    prompts = [[5], [5], [6, 7], [6, 7]]
    body = {"input_ids": prompts, "sampling_params": params, "rid": "group"}
    batch = (await client.post("/generate", json=body)).json()
    assert [one["meta_info"]["id"] for one in batch] == [f"group_{i}" for i in range(4)]
    singles = await asyncio.gather(
        *(
            client.post("/generate", json={"input_ids": prompt, "sampling_params": param})
            for prompt, param in zip(prompts, params, strict=True)
        )
    )
    assert [one["output_ids"] for one in batch] == [one.json()["output_ids"] for one in singles]


async def test_the_models_own_end_token_stops_and_is_included(client, folder):
    (eos,) = eos_token_ids(folder)
    body = {
        "input_ids": [[5]] * 16,
        "sampling_params": [{"max_new_tokens": 500, "sampling_seed": i} for i in range(16)],
    }
    for one in (await client.post("/generate", json=body)).json():
        if one["meta_info"]["finish_reason"]["type"] == "stop":
            assert one["meta_info"]["finish_reason"]["matched"] == eos
            assert one["output_ids"].count(eos) == 1
            assert one["output_ids"][-1] == eos
            return
    raise AssertionError("none of 16 responses of 500 tokens met the end token")


def test_eos_is_read_from_both_configs(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"eos_token_id": 3}))
    assert eos_token_ids(tmp_path) == {3}
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [3, 9]}))
    assert eos_token_ids(tmp_path) == {3, 9}
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "generation_config.json").write_text("{}")
    assert eos_token_ids(tmp_path) == frozenset()


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("/generate", b"{nonsense", "not JSON"),
        ("/generate", b"[1]", "JSON object"),
        ("/generate", b'{"input_ids": [900]}', "holds 900"),
        ("/generate", json.dumps({"input_ids": [3] * 512}).encode(), "model's context length"),
        ("/abort_request", b"{}", "abort_all"),
        ("/update_weights_from_disk", b'{"model_path": 3}', "model_path"),
        ("/pause_generation", b'{"mode": "in_place"}', "in_place"),
    ],
)
async def test_bad_bodies_are_400_with_a_message(client, path, content, message):
    response = await client.post(path, content=content)
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]


async def test_information_endpoints_answer(client, folder):
    for path in ("/health", "/health_generate", "/flush_cache"):
        assert (await client.get(path)).status_code == 200
    for path in ("/model_info", "/get_model_info", "/server_info", "/get_server_info"):
        info = (await client.get(path)).json()
        assert info["model_path"] == str(folder)
        assert info["weight_version"] == "3"
        assert info["context_length"] == 512
        assert info["enable_memory_saver"] is False
    workers = (await client.get("/workers")).json()["workers"]
    assert [worker["url"] for worker in workers] == ["http://engine:1"]


@pytest.mark.usefixtures("slow_steps")
async def test_abort_returns_partial_output(client):
    calls = [asyncio.create_task(client.post("/generate", json={**LONG, "rid": r})) for r in "ab"]
    await running(client, 2)
    assert (await client.post("/abort_request", json={"rid": "a"})).status_code == 200
    first = (await calls[0]).json()
    assert first["meta_info"]["finish_reason"]["type"] == "abort"
    assert first["meta_info"]["finish_reason"]["message"]
    assert 0 < len(first["output_ids"]) < 400
    assert not calls[1].done()
    await client.post("/abort_request", json={"abort_all": True})
    assert (await calls[1]).json()["meta_info"]["finish_reason"]["type"] == "abort"


@pytest.mark.usefixtures("slow_steps")
async def test_pause_and_continue(client):
    call = asyncio.create_task(client.post("/generate", json=LONG))
    await running(client, 1)
    assert (await client.post("/pause_generation")).status_code == 200
    assert (await call).json()["meta_info"]["finish_reason"]["type"] == "abort"
    short = {**LONG, "sampling_params": {"max_new_tokens": 2, "ignore_eos": True}}
    call = asyncio.create_task(client.post("/generate", json=short))
    await asyncio.sleep(0.1)
    assert not call.done()
    assert (await client.post("/continue_generation")).status_code == 200
    assert len((await call).json()["output_ids"]) == 2


async def test_weights_are_updated_from_disk(client, make_model, tmp_path):
    other, _ = make_model(seed=1)
    body = {"input_ids": [5, 6], "sampling_params": {"temperature": 0, "max_new_tokens": 20}}
    before = (await client.post("/generate", json=body)).json()["output_ids"]
    update = {"model_path": str(other), "weight_version": "4"}
    assert (await client.post("/update_weights_from_disk", json=update)).json()["success"] is True
    after = (await client.post("/generate", json=body)).json()
    assert after["output_ids"] != before
    assert after["meta_info"]["weight_version"] == "4"
    assert (await client.get("/model_info")).json()["model_path"] == str(other)
    update = {"model_path": str(tmp_path), "weight_version": "5"}
    refused = await client.post("/update_weights_from_disk", json=update)
    assert refused.status_code == 400
    assert refused.json()["success"] is False
    assert "config.json" in refused.json()["message"]
    assert (await client.get("/model_info")).json()["weight_version"] == "4"


@pytest.mark.usefixtures("slow_steps")
async def test_a_client_that_goes_away_frees_its_row(app, client):
    sent = [{"type": "http.request", "body": json.dumps(LONG).encode(), "more_body": False}]
    leave = asyncio.Event()

    async def receive() -> dict[str, object]:
        if sent:
            return sent.pop()
        await leave.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        pass

    scope = {"type": "http", "method": "POST", "path": "/generate", "headers": []}
    call = asyncio.create_task(app(scope, receive, send))
    await running(client, 1)
    leave.set()
    await asyncio.wait_for(call, 2)
    assert app.state.scheduler.load() == (0, 0)


async def test_broken_weights_are_a_500_that_says_so(app, client):
    app.state.scheduler._model._weights.norm[0] = float("nan")
    response = await client.post("/generate", json={"input_ids": [5]})
    assert response.status_code == 500
    assert "not finite under weight version 3" in response.json()["error"]["message"]
