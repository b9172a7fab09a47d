"""One HTTP/1.1 connection to a server, as a transport of httpx.

One design choice: it knows which bytes belong to which request. A server or gateway that sends more
than one answer to a request puts httpcore, httpx's own transport, one answer behind for the life
of the connection: every question then gets the verdict on the one before. Here a byte that is left
over or unasked for ends the connection.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator

import h11
import httpx

_HIGH_WATER = 1 << 18
"""Bytes received and not yet read at which the socket is left alone."""


class Connection(httpx.AsyncBaseTransport):
    """One request at a time, to one server; reconnects by itself. Belongs to one event loop.

    Of httpx's timeouts only `connect` is kept: the caller times the attempt as a whole.
    """

    def __init__(self, certificates: ssl.SSLContext, keepalive_s: float) -> None:
        self._certificates = certificates
        self._keepalive_s = keepalive_s
        self._wire: _Wire | None = None
        self._http = h11.Connection(our_role=h11.CLIENT)
        self._idle_since = 0.0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`; returns once the head of the response is there.

        Raises httpx's ConnectError, ConnectTimeout, ReadError and RemoteProtocolError.
        """
        body = await request.aread()
        wire = self._reusable_wire() or await self._connect(request)
        wire.asked = True
        try:
            wire.write(self._framed(request, body))
            while isinstance(answer := await self.next_event(), h11.InformationalResponse):
                pass
            if not isinstance(answer, h11.Response):
                raise httpx.RemoteProtocolError("the server hung up without an answer")
        except BaseException:
            self._drop()
            raise
        return httpx.Response(
            answer.status_code, headers=answer.headers.raw_items(), stream=_Body(self)
        )

    def _framed(self, request: httpx.Request, body: bytes) -> bytes:
        # In a function of its own: h11 shows headers, and so the key, in the repr of its events,
        # and a traceback with local variables would hold it.
        parts = (
            self._http.send(
                h11.Request(
                    method=request.method, target=request.url.raw_path, headers=request.headers.raw
                )
            ),
            self._http.send(h11.Data(data=body)),
            self._http.send(h11.EndOfMessage()),
        )
        return b"".join(part or b"" for part in parts)

    async def next_event(self) -> object:
        """The next event of the response under way."""
        assert self._wire is not None
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                self._http.receive_data(await self._wire.read())
        except h11.RemoteProtocolError:
            raise httpx.RemoteProtocolError("the answer is not HTTP/1.1") from None
        return event

    def finish(self) -> None:
        """The response under way is over: keep the connection if nothing else came with it."""
        complete = (self._http.our_state, self._http.their_state) == (h11.DONE, h11.DONE)
        if (
            complete
            and self._wire is not None
            and not self._http.trailing_data[0]
            and self._wire.rest()
        ):
            self._http.start_next_cycle()
            self._idle_since = time.monotonic()
        else:
            self._drop()

    async def aclose(self) -> None:
        """Close the connection."""
        self._drop()

    def _reusable_wire(self) -> _Wire | None:
        fresh = time.monotonic() - self._idle_since < self._keepalive_s
        return self._wire if self._wire is not None and self._wire.is_open and fresh else None

    async def _connect(self, request: httpx.Request) -> _Wire:
        self._drop()
        url, loop = request.url, asyncio.get_running_loop()
        secure = url.scheme == "https"
        connect_s = request.extensions.get("timeout", {}).get("connect")
        try:
            async with asyncio.timeout(connect_s):
                _, wire = await loop.create_connection(
                    _Wire,
                    url.host,
                    url.port or (443 if secure else 80),
                    ssl=self._certificates if secure else None,
                    happy_eyeballs_delay=0.25,
                )
        except TimeoutError as error:
            raise httpx.ConnectTimeout(f"no connection within {connect_s} s") from error
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        self._wire, self._http = wire, h11.Connection(our_role=h11.CLIENT)
        return wire

    def _drop(self) -> None:
        if self._wire is not None:
            self._wire.close()
            self._wire = None


class _Body(httpx.AsyncByteStream):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self._connection.next_event(), h11.Data):
            yield bytes(event.data)

    async def aclose(self) -> None:
        self._connection.finish()


class _Wire(asyncio.Protocol):
    """The bytes of one socket; between requests it accepts none."""

    def __init__(self) -> None:
        self.asked = False
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._paused = False
        self._ended = False
        self._error: Exception | None = None
        self._wake: asyncio.Future[None] | None = None

    @property
    def is_open(self) -> bool:
        return not self._ended and self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.asked:
            self.close()
            return
        self._received += data
        if len(self._received) > _HIGH_WATER and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._notify()

    def eof_received(self) -> None:
        self._ended = True
        self._notify()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended, self._error = True, exc
        self._notify()

    def write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    async def read(self) -> bytes:
        """What has come, at least a byte; b"" at the end."""
        while not self._received:
            if self._error is not None:
                raise httpx.ReadError(type(self._error).__name__) from self._error
            if self._ended:
                return b""
            if self._paused and self._transport is not None:
                self._paused = False
                self._transport.resume_reading()
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        data = bytes(self._received)
        self._received.clear()
        return data

    def rest(self) -> bool:
        """No request is under way any more; False if the connection is of no further use."""
        self.asked = False
        return self.is_open and not self._received and not self._paused

    def close(self) -> None:
        self._ended = True
        if self._transport is not None:
            self._transport.abort()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
