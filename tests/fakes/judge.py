"""A judge for tests: a real HTTP server that answers chat completions and can misbehave.

One design choice: raw asyncio in a thread of its own instead of a framework, because a framework
will not drip bytes, reset a connection or refuse to listen. `plan` holds what the next requests
get, first in first out; with an empty plan every request gets `default`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")
Messages = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Behaviour:
    """What one request gets. `body` replaces the whole reply, `message` the message in it."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    message: Mapping[str, Any] | None = None
    choices: int = 1
    finish_reason: str = "stop"
    delay_s: float = 0.0
    drip_s: float = 0.0
    """Pause after each byte of the body."""
    hang: bool = False
    """Read the request and never answer."""
    reset: bool = False
    """Read the request and reset the connection."""


def status(code: int, retry_after: str | None = None) -> Behaviour:
    """An error status whose body says so in OpenAI's form."""
    error = {"error": {"message": f"planned {code}", "type": "planned", "code": None}}
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return Behaviour(status=code, headers=headers, body=json.dumps(error).encode())


def raw(body: bytes, **headers: str) -> Behaviour:
    """A 200 with this body."""
    return Behaviour(body=body, headers=headers)


def message(**fields: Any) -> Behaviour:
    """A well-formed reply whose message holds these fields and nothing else."""
    return Behaviour(message=fields)


HANG = Behaviour(hang=True)
RESET = Behaviour(reset=True)


class FakeJudge:
    """The running server: its switches, and what it has seen."""

    def __init__(self, reply: Callable[[Messages], str], latency_s: float, seed: int) -> None:
        self.reply = reply
        self.latency_s = latency_s
        self.plan: deque[Behaviour] = deque()
        self.default = Behaviour()
        self.share_503 = 0.0
        """Share of requests, drawn by `seed`, that get a 503 while the plan is empty."""
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self._port = 0
        self._down = False
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        """Base address, /v1 included."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def calls(self) -> int:
        """Requests received so far."""
        return len(self.bodies)

    @property
    def down(self) -> bool:
        """While true the port refuses connections; setting it cuts the open ones."""
        return self._down

    @down.setter
    def down(self, value: bool) -> None:
        if value != self._down:
            self._down = value
            self._call(self._close() if value else self._listen())

    def start(self) -> None:
        """Listen on a free loopback port."""
        self._thread.start()
        self._call(self._listen())

    def stop(self) -> None:
        """Cut all connections and end the thread."""
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, backlog=512, reuse_address=True
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        here = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not here]
        for task in others:
            task.cancel()
        for writer in list(self._open):
            writer.transport.abort()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._open.add(writer)
        try:
            while await self._one_request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _one_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Serve one request; False ends the connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        payload = await reader.readexactly(int(headers.get("content-length", "0")))
        path = head[0].split(" ")[1]
        if path != "/v1/chat/completions":
            await self._send(writer, status(404), b"{}")
            return True
        body = json.loads(payload)
        self.headers.append(headers)
        self.bodies.append(body)
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        try:
            behaviour = self._next()
            if behaviour.hang:
                await reader.read()  # until the client has left
                return False
            return await self._answer(writer, behaviour, body)
        finally:
            self.in_flight -= 1

    def _next(self) -> Behaviour:
        if self.plan:
            return self.plan.popleft()
        if self.share_503 and self._random.random() < self.share_503:
            return status(503)
        return self.default

    async def _answer(
        self, writer: asyncio.StreamWriter, behaviour: Behaviour, body: dict[str, Any]
    ) -> bool:
        if self.latency_s or behaviour.delay_s:
            await asyncio.sleep(self.latency_s + behaviour.delay_s)
        if behaviour.reset:
            no_linger = struct.pack("ii", 1, 0)
            connection = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, no_linger)
            writer.transport.abort()
            return False
        content = behaviour.body
        if content is None:
            content = json.dumps(self._completion(behaviour, body)).encode()
        await self._send(writer, behaviour, content)
        return True

    def _completion(self, behaviour: Behaviour, body: dict[str, Any]) -> dict[str, Any]:
        words = behaviour.message
        if words is None:
            words = {"role": "assistant", "content": self.reply(body["messages"])}
        choice = {"index": 0, "message": dict(words), "finish_reason": behaviour.finish_reason}
        return {
            "id": f"chatcmpl-{self.calls}",
            "object": "chat.completion",
            "model": body.get("model"),
            "choices": [{**choice, "index": n} for n in range(behaviour.choices)],
            "usage": {
                "prompt_tokens": sum(len(m["content"]) for m in body["messages"]) // 4,
                "completion_tokens": len(str(words.get("content") or "")) // 4 + 1,
            },
        }

    async def _send(
        self, writer: asyncio.StreamWriter, behaviour: Behaviour, content: bytes
    ) -> None:
        headers = {
            "content-type": "application/json",
            "content-length": str(len(content)),
            **behaviour.headers,
        }
        lines = [f"HTTP/1.1 {behaviour.status} planned", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        if not behaviour.drip_s:
            writer.write(content)
        else:
            for n in range(len(content)):
                writer.write(content[n : n + 1])
                await writer.drain()
                await asyncio.sleep(behaviour.drip_s)
        await writer.drain()


def _constant(messages: Messages) -> str:
    return "stand-in reply"


@contextlib.contextmanager
def fake_judge(
    reply: Callable[[Messages], str] = _constant,
    *,
    latency_s: float = 0.0,
    share_503: float = 0.0,
    seed: int = 0,
) -> Iterator[FakeJudge]:
    """Serve on a free loopback port while the body runs.

    `reply` turns the messages of a request into the judge's words.
    """
    fake = FakeJudge(reply, latency_s, seed)
    fake.share_503 = share_503
    fake.start()
    try:
        yield fake
    finally:
        fake.stop()
