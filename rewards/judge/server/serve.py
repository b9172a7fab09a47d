"""Running the application: bind, serve, and stop without losing what is under way.

One design choice: on SIGTERM or SIGINT the service stops accepting, lets requests finish for
`drain_s`, answers the rest with what is decided, closes the judge and exits with 0.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Iterator

import uvicorn

from rewards.judge.server.app import Service, build_app
from rewards.judge.server.logs import log, start_logging

_ANSWERING_S = 5
"""For the answers of requests that were cut short to be sent."""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket (port 0: any free one); OSError that says what to type instead."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise OSError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another with "
            "--port (0 takes any free one) or another --host"
        ) from None


def serve(service: Service, sock: socket.socket) -> None:
    """Serve on `sock` until told to stop."""
    start_logging()
    config = uvicorn.Config(
        build_app(service),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(service.settings.drain_s) + _ANSWERING_S,
        timeout_keep_alive=75,
    )
    host, port = sock.getsockname()[:2]
    log("listening", host=host, port=port, token=not service.guard.open)
    asyncio.run(_Server(config, service).serve(sockets=[sock]))


class _Server(uvicorn.Server):
    """uvicorn's server, which tells the service when it is told to stop."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        service = self._service
        service.stopping = True
        log("stopping", outstanding=service.scoring.outstanding)
        loop = asyncio.get_running_loop()
        cut = loop.call_later(service.settings.drain_s, service.scoring.cut_short)
        await super().shutdown(sockets)
        cut.cancel()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals without raising them again at the end: being told to stop is no fault."""
        handled = (signal.SIGINT, signal.SIGTERM)
        before = {one: signal.signal(one, self.handle_exit) for one in handled}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)
