"""Connections are reused, never shared half-read, and every failure is one httpx knows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from slime_ext.rollout.transport import KeepAliveTransport

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n"
CLOSING = b"HTTP/1.1 503 Busy\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
UNTIL_CLOSED = b"HTTP/1.1 200 OK\r\n\r\nok"

Answer = Callable[[asyncio.StreamWriter], Coroutine[None, None, bool]]


@dataclass
class Server:
    """A raw server: `answer` writes the reply to each request and says whether to stay open."""

    answer: Answer
    url: str = ""
    connections: int = 0
    bodies: list[bytes] = field(default_factory=list)
    open_now: int = 0
    open_most: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        self.bodies.append(await reader.readexactly(length))
        self.open_now += 1
        self.open_most = max(self.open_most, self.open_now)
        try:
            return await self.answer(writer)
        finally:
            self.open_now -= 1


def always(reply: bytes, stay: bool = True) -> Answer:
    async def answer(writer: asyncio.StreamWriter) -> bool:
        writer.write(reply)
        await writer.drain()
        return stay

    return answer


@asynccontextmanager
async def serving(
    answer: Answer, limit: int = 512
) -> AsyncIterator[tuple[Server, httpx.AsyncClient]]:
    server = Server(answer)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/generate"
    async with httpx.AsyncClient(transport=KeepAliveTransport(limit), trust_env=False) as client:
        yield server, client
    listener.close()


@pytest.mark.parametrize("reply", [OK, CHUNKED], ids=["length", "chunked"])
async def test_a_connection_serves_one_request_after_another(reply: bytes) -> None:
    async with serving(always(reply)) as (server, client):
        for body in (b"first", b"second", b"third"):
            assert (await client.post(server.url, content=body)).content == b"ok"
        assert server.connections == 1
        assert server.bodies == [b"first", b"second", b"third"]


async def test_a_body_that_ends_with_the_connection_is_whole() -> None:
    async with serving(always(UNTIL_CLOSED, stay=False)) as (server, client):
        for _ in range(2):
            assert (await client.post(server.url, content=b"x")).content == b"ok"
        assert server.connections == 2


async def test_a_closing_answer_is_given_and_its_connection_dropped() -> None:
    async with serving(always(CLOSING)) as (server, client):
        for _ in range(2):
            assert (await client.post(server.url, content=b"x")).status_code == 503
        assert server.connections == 2


async def test_a_connection_the_server_left_idle_and_closed_is_not_used() -> None:
    async with serving(always(OK, stay=False)) as (server, client):
        await client.post(server.url, content=b"x")
        await asyncio.sleep(0.05)
        assert (await client.post(server.url, content=b"x")).content == b"ok"
        assert server.connections == 2


async def test_requests_at_the_same_time_keep_to_the_limit() -> None:
    async def slow(writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(0.01)
        return await always(OK)(writer)

    async with serving(slow, limit=4) as (server, client):
        done = await asyncio.gather(*(client.post(server.url, content=b"x") for _ in range(20)))
        assert [answer.content for answer in done] == [b"ok"] * 20
        assert server.connections == server.open_most == 4


async def test_a_cancelled_request_does_not_leave_its_answer_to_the_next() -> None:
    replies = [b"late", b"mine"]

    async def answer(writer: asyncio.StreamWriter) -> bool:
        text = replies.pop(0)
        if text == b"late":
            await asyncio.sleep(0.05)
        return await always(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n" + text)(writer)

    async with serving(answer) as (server, client):
        first = asyncio.create_task(client.post(server.url, content=b"x"))
        while server.open_now == 0:
            await asyncio.sleep(0.001)
        first.cancel()
        assert (await client.post(server.url, content=b"y")).content == b"mine"
        assert server.connections == 2


async def test_silence_is_a_read_timeout() -> None:
    async def silent(writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(0.2)
        return False

    async with serving(silent) as (server, client):
        with pytest.raises(httpx.ReadTimeout):
            await client.post(server.url, content=b"x", timeout=0.02)


@pytest.mark.parametrize(
    "reply",
    [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort", b"\x00 not HTTP\r\n\r\n"],
    ids=["nothing", "cut", "garbage"],
)
async def test_a_broken_answer_is_a_transport_error(reply: bytes) -> None:
    async with serving(always(reply, stay=False)) as (server, client):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(server.url, content=b"x")


async def test_nobody_listening_is_a_connect_error() -> None:
    async with serving(always(OK)) as (server, client):
        pass
    async with httpx.AsyncClient(transport=KeepAliveTransport()) as client:
        with pytest.raises(httpx.ConnectError):
            await client.post(server.url, content=b"x")


async def test_another_scheme_is_refused() -> None:
    async with httpx.AsyncClient(transport=KeepAliveTransport()) as client:
        with pytest.raises(httpx.UnsupportedProtocol, match="http://"):
            await client.post("https://127.0.0.1:1/generate", content=b"x")
