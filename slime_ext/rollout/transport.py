"""HTTP/1.1 to the rollout engine over kept-alive connections, as a transport for httpx.

One design choice: a free connection is taken from a stack in constant time. httpcore's own pool
compares all its connections with one another on every request: with 96 requests at a time that is 1
to 2 CPU-seconds a training step, several times what sampling and training the lab model take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import h11
import httpx

_READ_BYTES = 65536
_T = TypeVar("_T")


class KeepAliveTransport(httpx.AsyncBaseTransport):
    """Plain HTTP to any host, at most `limit` requests at a time; the others wait.

    Bodies are read whole. Belongs to the event loop that uses it first.
    """

    def __init__(self, limit: int = 512) -> None:
        self._free: dict[tuple[str, int], list[_Connection]] = {}
        self._slots = asyncio.Semaphore(limit)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request` and return the whole response.

        Raises httpx's ConnectError, ReadError, WriteError, their timeouts, RemoteProtocolError for
        an answer that is not HTTP, and UnsupportedProtocol for any scheme but http.
        """
        if request.url.scheme != "http":
            raise httpx.UnsupportedProtocol(f"{request.url}: only http:// is spoken to an engine")
        async with self._slots:
            address = (request.url.host, request.url.port or 80)
            free = self._free.setdefault(address, [])
            timeouts = request.extensions.get("timeout", {})
            connection = _take(free) or await _connect(*address, timeouts.get("connect"))
            try:
                response = await connection.exchange(request, timeouts)
            finally:
                # Also after an error or a cancellation: a half-read connection is never reused.
                if connection.reusable():
                    free.append(connection)
                else:
                    connection.close()
            return response

    async def aclose(self) -> None:
        """Close the connections nobody is using."""
        for free in self._free.values():
            while free:
                free.pop().close()


class _Connection:
    """One socket and the state of HTTP on it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(our_role=h11.CLIENT)

    def reusable(self) -> bool:
        """Whether the last exchange is complete and the server has not hung up."""
        done = (self._http.our_state, self._http.their_state) == (h11.DONE, h11.DONE)
        return done and not self._reader.at_eof() and not self._writer.is_closing()

    def close(self) -> None:
        """Drop the connection without waiting for the other side."""
        self._writer.close()

    async def exchange(
        self, request: httpx.Request, timeouts: dict[str, float | None]
    ) -> httpx.Response:
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        head = h11.Request(
            method=request.method, target=request.url.raw_path, headers=request.headers.raw
        )
        parts = [self._http.send(head)]
        if body := await request.aread():
            parts.append(self._http.send(h11.Data(data=body)))
        parts.append(self._http.send(h11.EndOfMessage()))
        try:
            self._writer.write(b"".join(part for part in parts if part))
            await _within(self._writer.drain(), timeouts.get("write"), httpx.WriteTimeout)
        except OSError as error:
            raise httpx.WriteError(str(error)) from error
        return await self._receive(timeouts.get("read"))

    async def _receive(self, timeout: float | None) -> httpx.Response:
        head: h11.Response | None = None
        body: list[bytes] = []
        while True:
            event = await self._event(timeout)
            if isinstance(event, h11.Response):
                head = event
            elif isinstance(event, h11.Data):
                body.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                content = httpx.ByteStream(b"".join(body))
                headers = head.headers.raw_items()
                return httpx.Response(head.status_code, headers=headers, stream=content)
            elif not isinstance(event, h11.InformationalResponse):
                raise httpx.RemoteProtocolError(f"unexpected {event!r} from the engine")

    async def _event(self, timeout: float | None) -> object:
        """The next event; `timeout` (seconds) is for each wait, as in httpx."""
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                data = await _within(self._reader.read(_READ_BYTES), timeout, httpx.ReadTimeout)
                self._http.receive_data(data)
        except h11.RemoteProtocolError as error:
            raise httpx.RemoteProtocolError(str(error)) from error
        except OSError as error:
            raise httpx.ReadError(str(error)) from error
        return event


def _take(free: list[_Connection]) -> _Connection | None:
    """The connection used last that is still open."""
    while free:
        connection = free.pop()
        if connection.reusable():
            return connection
        connection.close()
    return None


async def _connect(host: str, port: int, timeout: float | None) -> _Connection:
    try:
        opening = asyncio.open_connection(host, port)
        return _Connection(*await _within(opening, timeout, httpx.ConnectTimeout))
    except OSError as error:
        raise httpx.ConnectError(f"{host}:{port}: {error}") from error


async def _within(
    work: Awaitable[_T], timeout: float | None, error: type[httpx.TimeoutException]
) -> _T:
    try:
        async with asyncio.timeout(timeout):
            return await work
    except TimeoutError as expired:
        raise error(f"no progress for {timeout} s") from expired
