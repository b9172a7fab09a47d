"""A stand-in for W&B's server on a port of this machine: it keeps what the real client sends.

One design choice: it answers only the requests that a run makes (who am I, is there such a run,
create it, take its rows), as the client of wandb 0.31.0 asks them; any other request gets an empty
answer. Rows are kept by run and by their place in the run, as the real server keeps them.
"""

from __future__ import annotations

import base64
import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "0123456789abcdef" * 2 + "01234567"


@dataclass
class FakeWandb:
    """What the server was sent."""

    port: int = 0
    rows: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    """Rows of each run by their offset."""
    config: dict[str, dict[str, Any]] = field(default_factory=dict)
    summary: dict[str, dict[str, Any]] = field(default_factory=dict)
    views: list[dict[str, Any]] = field(default_factory=list)
    refuse_rows: bool = False
    silent_rows: bool = False
    """Take rows and never answer."""
    raw: bytes = b""
    """Every body, one after the other."""
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def history(self, run: str) -> list[dict[str, Any]]:
        """The rows of a run in order."""
        return [row for _, row in sorted(self.rows.get(run, {}).items())]

    def graphql(self, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        """The answer to one query."""
        project = {"id": "UA==", "name": variables.get("project"), "entity": {"name": "me"}}
        if "upsertView" in query:
            self.views.append(variables)
            return {"upsertView": {"view": {"id": "Vg==", "name": variables["name"]}}}
        if "upsertBucket" in query:
            name = variables["name"]
            fresh = name not in self.rows
            self.rows.setdefault(name, {})
            if variables.get("config"):
                self.config[name] = json.loads(variables["config"])
            bucket = {"id": "Qg==", "name": name, "displayName": name, "project": project}
            bucket |= {"historyLineCount": len(self.rows[name]), "config": None}
            return {"upsertBucket": {"bucket": bucket, "inserted": fresh}}
        if "RunResumeStatus" in query:
            return {"model": {**project, "bucket": self._bucket(variables["name"])}}
        if "createRunFiles" in query:
            files = [{"name": one, "uploadUrl": f"{self.url}/put"} for one in variables["files"]]
            return {"createRunFiles": {"runID": "Qg==", "uploadHeaders": [], "files": files}}
        if "allViews" in query:
            edges = [
                {"node": {"id": "Vg==", "displayName": one["displayName"], **one}}
                for one in self.views
                if one["name"] == variables["viewName"]
            ]
            return {"project": {"allViews": {"edges": edges}}}
        if "query Rows" in query:
            name = variables["run"]
            found = {"historyLineCount": len(self.rows[name])} if name in self.rows else None
            return {"project": {"run": found}}
        if "viewer" in query:
            return {"viewer": {"id": "VQ==", "entity": "me", "username": "me", "flags": "{}"}}
        return {}

    def _bucket(self, name: str) -> dict[str, Any] | None:
        if name not in self.rows:
            return None
        rows = self.history(name)
        return {
            "id": "Qg==",
            "name": name,
            "displayName": name,
            "summaryMetrics": json.dumps(self.summary.get(name, {})),
            "logLineCount": 0,
            "historyLineCount": len(rows),
            "eventsLineCount": 0,
            "historyTail": json.dumps([json.dumps(row) for row in rows[-1:]]),
            "eventsTail": "[]",
            "config": json.dumps(self.config.get(name, {})),
            "tags": [],
            "notes": None,
            "wandbConfig": json.dumps({"t": {}}),
        }

    def stream(self, run: str, files: dict[str, Any]) -> None:
        """Take the lines of a run's files."""
        history = files.get("wandb-history.jsonl", {"offset": 0, "content": []})
        for place, line in enumerate(history["content"], history["offset"]):
            self.rows.setdefault(run, {})[place] = json.loads(line)
        for line in files.get("wandb-summary.json", {"content": []})["content"]:
            self.summary[run] = json.loads(line)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeWandb

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> Any:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.fake.raw += body
        if self.path.startswith("/sdk/"):
            return self._answer(200, {})
        if self.headers.get("Authorization") != _basic(KEY):
            return self._answer(401, {"errors": [{"message": "invalid API key"}]})
        if self.path == "/graphql":
            asked = json.loads(body)
            data = self.fake.graphql(asked["query"], asked.get("variables") or {})
            return self._answer(200, {"data": data})
        if self.path.endswith("/file_stream"):
            if self.fake.silent_rows:
                return self.fake.ended.wait(60)
            if self.fake.refuse_rows:
                return self._answer(400, {"error": "refused"})
            self.fake.stream(self.path.split("/")[-2], json.loads(body).get("files") or {})
        return self._answer(200, {})

    def do_PUT(self) -> None:
        self.fake.raw += self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self._answer(200, {})

    def do_GET(self) -> None:
        self._answer(200, {})

    def _answer(self, code: int, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """The client cuts its connections when it ends."""


def _basic(key: str) -> str:
    return "Basic " + base64.b64encode(f"api:{key}".encode()).decode()


@contextmanager
def fake_wandb() -> Iterator[FakeWandb]:
    """A server while the body runs."""
    fake = FakeWandb()
    handler = type("Handler", (_Handler,), {"fake": fake})
    server = _Server(("127.0.0.1", 0), handler)
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
