"""A rollout engine for tests: speaks /generate over real HTTP and can be told to misbehave.

`plan` holds what the next requests get, first in first out: a dict is sent as the answer, an
integer as a status, (status, text) as a status with a body, "drop" closes the connection without an
answer. With an empty plan it answers with `reply`.
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
        self.port = 0


@contextlib.contextmanager
def fake_engine(reply: dict[str, Any]) -> Iterator[FakeEngine]:
    """Serve on a free loopback port while the body runs."""
    fake = FakeEngine(reply)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            fake.received.append(json.loads(body))
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
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
