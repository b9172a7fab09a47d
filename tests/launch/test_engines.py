"""Addresses of running engines, and what is said of one that does not answer."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from launch.engines import other_models, parse_engines, served_models
from slime_ext.errors import ExplainedError


def test_addresses_are_read_with_and_without_scheme() -> None:
    assert parse_engines("http://a:1, b:2,[::1]:3,") == ["a:1", "b:2", "[::1]:3"]
    assert parse_engines("") == []


@pytest.mark.parametrize("text", ["https://a:1", "a", "http://a", "a:b", "a:99999", "http://:1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ExplainedError, match="HOST:PORT") as error:
        parse_engines(text)
    assert text in str(error.value)


def test_the_served_model_is_asked_for_under_both_names(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/get_server_info").respond_with_json({"model_path": "/models/one"})
    engine = f"{httpserver.host}:{httpserver.port}"
    assert served_models([engine]) == {engine: "/models/one"}


def test_a_dead_engine_is_named() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        engine = f"127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(ExplainedError, match=engine):
            served_models([engine])


@pytest.mark.parametrize("body", ["[]", "{}", "<html>"])
def test_a_server_of_another_kind_is_named(httpserver: HTTPServer, body: str) -> None:
    for path in ("/server_info", "/get_server_info"):
        httpserver.expect_request(path).respond_with_data(body, content_type="application/json")
    with pytest.raises(ExplainedError, match="does not answer as an SGLang server"):
        served_models([f"{httpserver.host}:{httpserver.port}"])


def test_another_model_is_told_from_the_same_one_by_another_path(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "model")
    served = {"a:1": str(tmp_path / "link"), "b:2": str(tmp_path / "old")}
    assert other_models(served, tmp_path / "model") == [
        f"b:2 serves {tmp_path / 'old'}, not {tmp_path / 'model'}"
    ]
