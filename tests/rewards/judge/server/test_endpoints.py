"""The states /health shows, against real servers on loopback."""

from __future__ import annotations

import pytest
from werkzeug import Response

from rewards.judge.config import EndpointConfig, JudgeConfig
from rewards.judge.server.endpoints import EndpointProbe


@pytest.mark.parametrize(
    ("status", "state"),
    [(200, "up"), (404, "up"), (429, "up"), (401, "unauthorised"), (503, "error 503")],
)
async def test_states_by_status(httpserver, monkeypatch, status, state):
    httpserver.expect_request(
        "/v1/models", headers={"Authorization": "Bearer key-of-the-judge"}
    ).respond_with_response(Response("{}", status))
    monkeypatch.setenv("JUDGE_KEY", "key-of-the-judge")
    url = httpserver.url_for("/v1")
    probe = EndpointProbe(JudgeConfig(endpoints=(EndpointConfig(url=url, key_env="JUDGE_KEY"),)))
    assert await probe.states() == {url: state}


async def test_answers_are_kept_for_a_while(httpserver):
    httpserver.expect_oneshot_request("/v1/models").respond_with_json({})
    probe = EndpointProbe(JudgeConfig(endpoints=(EndpointConfig(url=httpserver.url_for("/v1")),)))
    first = await probe.states()
    assert await probe.states() == first
    assert len(httpserver.log) == 1


async def test_a_closed_port_is_unreachable_and_passwords_are_left_out(unused_tcp_port):
    url = f"http://user:SECRET@127.0.0.1:{unused_tcp_port}/v1"
    probe = EndpointProbe(JudgeConfig(endpoints=(EndpointConfig(url=url),)))
    assert await probe.states() == {f"http://127.0.0.1:{unused_tcp_port}/v1": "unreachable"}
