"""Ctrl-C and SIGTERM as a request: finish the step, save, leave; a second one stops at once.

One design choice: a flag read between steps, not an exception, because an exception between the
optimiser and the weight push would leave a state no checkpoint describes.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType


class StopRequest:
    """Whether the run was asked to stop, and by what."""

    def __init__(self) -> None:
        self.reason: str | None = None

    @property
    def requested(self) -> bool:
        return self.reason is not None

    def request(self, reason: str) -> None:
        self.reason = reason


@contextlib.contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn SIGINT and SIGTERM into a request inside the body; the second SIGINT interrupts."""
    stop = StopRequest()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.requested:
            raise KeyboardInterrupt
        stop.request(signal.Signals(number).name)
        print("\nstopping after this step; once more stops at once", file=sys.stderr)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
