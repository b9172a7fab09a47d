"""A connection on raw bytes: what belongs to a request, and what ends the connection."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator

import httpx
import pytest

from rewards.judge.connection import Connection
from rewards.judge.pools import is_proxied

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n"


class Server:
    """Sends `answers` one after another, whatever is asked; None hangs up."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                await writer.drain()
                if answer == CONTINUE:
                    await reader.read()
                if b"connection: close" in answer or not (
                    b"-length" in answer or b"chunked" in answer
                ):
                    break
        writer.close()


@contextlib.asynccontextmanager
async def served(
    *answers: bytes | None, keepalive_s: float = 60.0
) -> AsyncIterator[tuple[Server, httpx.AsyncClient]]:
    server = Server(*answers)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    transport = Connection(ssl.create_default_context(), keepalive_s)
    base = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(transport=transport, base_url=base) as client:
        yield server, client
    listening.close()


async def ask(client: httpx.AsyncClient) -> str:
    return (await client.post("/", content=b"question")).text


@pytest.mark.parametrize("answer", [OK + b"ok", CHUNKED, CONTINUE + CHUNKED])
async def test_a_connection_is_used_again(answer: bytes) -> None:
    async with served(answer, answer, answer) as (server, client):
        assert [await ask(client) for _ in range(3)] == ["ok"] * 3
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        OK.replace(b"OK\r\n", b"OK\r\nconnection: close\r\n") + b"ok",
        b"HTTP/1.1 200 OK\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\n\r\nok",
    ],
)
async def test_a_server_that_closes_is_connected_to_again(answer: bytes) -> None:
    async with served(answer, answer) as (server, client):
        assert [await ask(client) for _ in range(2)] == ["ok"] * 2
    assert server.connections == 2


@pytest.mark.parametrize("extra", [OK + b"no", b"x", b"\r\n"])
async def test_bytes_left_over_are_never_the_next_answer(extra: bytes) -> None:
    async with served(OK + b"ok" + extra, OK + b"ok") as (server, client):
        assert [await ask(client) for _ in range(2)] == ["ok"] * 2
    assert server.connections == 2


async def test_bytes_that_come_unasked_are_never_the_next_answer() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"question")
        writer.write(OK + b"ok")
        await writer.drain()
        await proceed.wait()
        writer.write(OK + b"no")
        with contextlib.suppress(ConnectionError):
            await reader.read()

    proceed = asyncio.Event()
    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    transport = Connection(ssl.create_default_context(), 60.0)
    async with httpx.AsyncClient(transport=transport, base_url=url) as client:
        assert await ask(client) == "ok"
        proceed.set()
        await asyncio.sleep(0.05)
        assert await ask(client) == "ok"
    listening.close()


async def test_bytes_that_come_while_a_response_is_read_are_left_over_too() -> None:
    async with served(OK + b"ok", OK + b"ok") as (server, client):
        async with client.stream("POST", "/", content=b"question") as response:
            pieces = response.stream.__aiter__()
            assert [piece async for piece in pieces] == [b"ok"]
            client._transport._wire.data_received(OK + b"no")
        assert await ask(client) == "ok"
    assert server.connections == 2


async def test_the_answer_to_a_cancelled_request_is_never_the_next_answer() -> None:
    async with served(CONTINUE, OK + b"ok") as (server, client):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ask(client)
        assert client._transport._wire is None
        assert await ask(client) == "ok"
    assert server.connections == 2


async def test_an_idle_connection_is_not_trusted_for_ever() -> None:
    async with served(OK + b"ok", OK + b"ok", keepalive_s=0.0) as (server, client):
        assert [await ask(client) for _ in range(2)] == ["ok"] * 2
    assert server.connections == 2


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, httpx.RemoteProtocolError),
        (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\nconnection: close\r\n\r\nok",
         httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 200_000 + b"\r\n\r\n", httpx.RemoteProtocolError),
    ],
    ids=["hangs up", "another protocol", "cut short", "endless head"],
)  # fmt: skip
async def test_what_is_not_an_answer_is_an_error_of_transport(
    answer: bytes | None, error: type[Exception]
) -> None:
    async with served(answer, OK + b"ok") as (_, client):
        with pytest.raises(error):
            await ask(client)
        assert await ask(client) == "ok"


async def test_a_body_that_is_not_read_does_not_fill_the_memory() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 50000000\r\n\r\n"
    async with (
        served(head + b"x" * 50_000_000) as (_, client),
        client.stream("POST", "/", content=b"question") as response,
    ):
        await asyncio.sleep(0.1)
        wire = client._transport._wire
        assert len(wire._received) < 2_000_000
        assert response.status_code == 200


def test_a_proxy_is_for_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert not is_proxied("http", "judge")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.setenv("no_proxy", ".cluster")
    assert is_proxied("http", "judge")
    assert not is_proxied("https", "judge")
    for host in ("localhost", "127.0.0.1", "127.8.8.8", "::1", "judge.cluster"):
        assert not is_proxied("http", host)
