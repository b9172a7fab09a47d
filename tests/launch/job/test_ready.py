"""Waiting for nodes and services, with a deadline that says what is missing."""

from __future__ import annotations

import re

import pytest
from pytest_httpserver import HTTPServer

from launch.job.health import NotHealthyError, wait_healthy
from launch.job.ready import NotReadyError, ray_nodes, wait_ready

NODES = {"n1": 8, "n2": 8}


def test_it_returns_once_all_nodes_are_there() -> None:
    answers = iter([{}, {"n1": 8}, {"n1": 8, "n2": 4}, {"n1": 8, "n2": 8, "n9": 8}])
    asked = []

    def poll() -> dict[str, int]:
        asked.append(next(answers))
        return asked[-1]

    assert wait_ready(NODES, 60, poll, pause_s=0) >= 0
    assert len(asked) == 4


def test_a_node_without_gpus_counts_as_there_where_none_is_expected() -> None:
    wait_ready({"n1": 0}, 1, lambda: {"n1": 0}, pause_s=0)
    with pytest.raises(NotReadyError, match="n1"):
        wait_ready({"n1": 0}, 0, dict, pause_s=0)


def test_missing_and_short_nodes_are_named() -> None:
    with pytest.raises(NotReadyError) as raised:
        wait_ready(NODES | {"n3": 8}, 0, lambda: {"n1": 8, "n2": 3}, pause_s=0)
    said = str(raised.value)
    assert "n2 (joined with 3 of 8 GPUs), n3" in said
    assert "n1" not in said
    assert "--exclude=NODE" in said


@pytest.mark.parametrize("status", [403, 500])
def test_a_dashboard_of_somebody_else_shows_no_nodes(httpserver: HTTPServer, status: int) -> None:
    words = "Forbidden: Invalid authentication token"
    httpserver.expect_request(re.compile(".*")).respond_with_data(words, status=status)
    assert ray_nodes(httpserver.url_for("")) == {}
    assert httpserver.log


def test_a_service_is_healthy_once_it_answers(httpserver: HTTPServer) -> None:
    httpserver.expect_ordered_request("/health").respond_with_data("loading", status=503)
    httpserver.expect_ordered_request("/health").respond_with_data("ok")
    assert wait_healthy(httpserver.url_for("/health"), "judge", 30, pause_s=0) >= 0


def test_a_service_that_stays_ill_is_named_with_its_last_answer(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/health").respond_with_data("loading", status=503)
    with pytest.raises(NotHealthyError, match=r"service judge .* \(status 503\)"):
        wait_healthy(httpserver.url_for("/health"), "judge", 0.2, pause_s=0.05)


def test_a_service_that_is_not_there_is_named(free_tcp_port: int) -> None:
    with pytest.raises(NotHealthyError, match="Connection refused"):
        wait_healthy(f"http://127.0.0.1:{free_tcp_port}/", "judge", 0.1, pause_s=0.05)


@pytest.fixture
def free_tcp_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
