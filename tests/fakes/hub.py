"""A model and data hub for tests: the part of the Hugging Face protocol that clients use.

Repositories are `models/OWNER/NAME` or `datasets/OWNER/NAME` with files as bytes. A repository in
`gated` answers 403, an unknown one 404, as the hub does; `log` holds every request.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class FakeHub:
    """State of the fake: its repositories, its log, its address."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.gated: set[str] = set()
        self.log: list[tuple[str, str]] = []
        self.port = 0

    @property
    def url(self) -> str:
        """Value of HF_ENDPOINT."""
        return f"http://127.0.0.1:{self.port}"

    def fetched(self) -> list[str]:
        """Files whose content was asked for, in order."""
        return [
            p.rsplit("/", 1)[1] for method, p in self.log if method == "GET" and "/api/" not in p
        ]


@contextlib.contextmanager
def fake_hub() -> Iterator[FakeHub]:
    """Serve a fake on a free port of 127.0.0.1."""
    hub = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    hub.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _entry(path: str, content: bytes) -> dict[str, Any]:
    return {"type": "file", "path": path, "size": len(content), "oid": _oid(content)}


def _oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\x00" % len(content) + content).hexdigest()


def _info(repository: str, files: dict[str, bytes]) -> dict[str, Any]:
    siblings = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
    return {"id": repository, "sha": COMMIT, "private": False, "tags": [], "siblings": siblings}


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(b"")

        def do_HEAD(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _answer(self, body: bytes) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.log.append((self.command, path))
            parts = path.strip("/").split("/")
            api = parts[0] == "api"
            parts = parts[1:] if api else parts
            kind = parts.pop(0) if parts[0] in ("models", "datasets") else "models"
            repository, rest = "/".join(parts[:2]), parts[2:]
            name = f"{kind}/{repository}"
            if name in hub.gated:
                self._send(403, {"error": "ask first"}, {"X-Error-Code": "GatedRepo"})
            elif name not in hub.repositories:
                self._send(404, {"error": "not found"}, {"X-Error-Code": "RepoNotFound"})
            elif api:
                self._api(repository, hub.repositories[name], rest, body)
            else:
                self._file(hub.repositories[name], "/".join(rest[2:]))

        def _api(self, repo: str, files: dict[str, bytes], rest: list[str], body: bytes) -> None:
            what = rest[0] if rest else "revision"
            if what == "revision":
                self._send(200, _info(repo, files))
            elif what == "tree":
                folder = "/".join(rest[2:])
                entries = [_entry(p, c) for p, c in files.items() if p.startswith(folder)]
                missing = folder and not entries
                self._send(404 if missing else 200, entries)
            elif what == "paths-info":
                asked = json.loads(body)["paths"] if body[:1] == b"{" else parse_qs(body.decode())
                paths = asked if isinstance(asked, list) else asked["paths"]
                self._send(200, [_entry(p, files[p]) for p in paths if p in files])
            else:
                self._send(404, {"error": f"no {what}"})

        def _file(self, files: dict[str, bytes], path: str) -> None:
            if path not in files:
                self._send(404, {"error": "no file"}, {"X-Error-Code": "EntryNotFound"})
                return
            content = files[path]
            self._send(200, content, {"ETag": f'"{_oid(content)}"', "X-Repo-Commit": COMMIT})

        def _send(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            start, whole = 0, len(data)
            wanted = self.headers.get("Range")
            if wanted and status == 200:
                start = int(wanted.removeprefix("bytes=").split("-")[0])
                status = 206
            self.send_response(status)
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
            self.send_header("Content-Length", str(whole - start))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data[start:])

        def log_message(self, *args: Any) -> None:
            pass

    return Handler
