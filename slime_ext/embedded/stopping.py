"""Ctrl-C, SIGTERM and SIGUSR1 as a request: finish the step, save, leave.

One design choice: a flag read between steps, not an exception, because an exception between the
optimiser and the weight push would leave a state no checkpoint describes. Only a second Ctrl-C
stops at once: schedulers send SIGTERM after SIGUSR1, and again, while the run saves.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopRequest:
    """Whether the run was asked to stop, and by what."""

    def __init__(self) -> None:
        self.reason: str | None = None

    @property
    def requested(self) -> bool:
        return self.reason is not None

    def request(self, reason: str) -> None:
        self.reason = reason

    def request_once(self, reason: str) -> None:
        """Ask to stop, unless somebody else has."""
        if not self.requested:
            self.request(reason)


@contextlib.contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn SIGNALS into a request inside the body; a SIGINT after the first interrupts."""
    stop = StopRequest()

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.requested:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            return
        stop.request(signal.Signals(number).name)
        print("\nstopping after this step; Ctrl-C stops at once", file=sys.stderr)

    before = {number: signal.signal(number, handle) for number in SIGNALS}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
