"""A rollout engine for tests: speaks /generate over real HTTP and can be told to misbehave.

`plan` holds what the next requests get, first in first out: a dict is sent as the answer, an
integer as a status, (status, text) as a status with a body, "drop" closes the connection without an
answer. With an empty plan it answers with `reply`. Given `workers`, it also stands in for a router:
GET /workers lists them. POST /abort_request is counted apart and answered by `abort_status`.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def answer(ids: list[int], finish: dict[str, Any], log_prob: float = -0.5) -> dict[str, Any]:
    """An answer of /generate with the sampled `ids`."""
    return {
        "output_ids": ids,
        "meta_info": {
            "finish_reason": finish,
            "weight_version": "7",
            "output_token_logprobs": [[log_prob, token, None] for token in ids],
        },
    }


class FakeEngine:
    """State of the fake: its address, its plan, and the bodies it received."""

    def __init__(self, reply: dict[str, Any]) -> None:
        self.reply = reply
        self.plan: deque[Any] = deque()
        self.received: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        """Routing key of each request received."""
        self.workers: list[dict[str, Any]] | None = None
        self.aborts: list[dict[str, Any]] = []
        """Bodies of the abort requests received."""
        self.abort_status = 200
        self.gate = threading.Event()
        """While it is cleared, requests are received and not answered."""
        self.gate.set()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.contextmanager
def fake_engine(reply: dict[str, Any]) -> Iterator[FakeEngine]:
    """Serve on a free loopback port while the body runs."""
    fake = FakeEngine(reply)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/abort_request":
                fake.aborts.append(json.loads(body))
                self._send(fake.abort_status, {})
                return
            fake.received.append(json.loads(body))
            fake.keys.append(self.headers.get("X-SMG-Routing-Key"))
            fake.gate.wait(timeout=30)
            planned = fake.plan.popleft() if fake.plan else fake.reply
            if planned == "drop":
                self.close_connection = True
                self.connection.close()
                return
            status, content = 200, planned
            if isinstance(planned, int):
                status, content = planned, {"error": {"message": "planned"}}
            elif isinstance(planned, tuple):
                status, content = planned[0], {"error": {"message": planned[1]}}
            self._send(status, content)

        def do_GET(self) -> None:
            known = self.path == "/workers" and fake.workers is not None
            self._send(200 if known else 404, {"workers": fake.workers})

        def _send(self, status: int, content: Any) -> None:
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
