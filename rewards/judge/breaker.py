"""Circuit breaker of one endpoint: closed, open, half open.

One design choice: the run of failures that opens it must also be as long as the number of requests
under way there. With 64 under way and one in five failing, five failures in a row come up by chance
every few thousand requests; 64 in a row do not, and an endpoint that is down produces them at once.
"""

from __future__ import annotations

from typing import Literal

State = Literal["closed", "open", "half_open"]


class Breaker:
    """State of one endpoint. Times are seconds of the caller's clock; not safe across threads."""

    def __init__(self, failures: int, reset_s: float) -> None:
        self.state: State = "closed"
        self.in_a_row = 0
        self._failures = failures
        self._reset_s = reset_s
        self._opened_at = 0.0

    def ready_at(self) -> float | None:
        """When a request may be sent; 0.0 is now, None while a probe is under way."""
        if self.state == "closed":
            return 0.0
        if self.state == "half_open":
            return None
        return self._opened_at + self._reset_s

    def start(self) -> bool:
        """A request is being sent; True if it is the probe. Call only once `ready_at` is past."""
        if self.state == "open":
            self.state = "half_open"
            return True
        return False

    def succeed(self) -> bool:
        """A request was answered; True if this closed an open endpoint."""
        self.in_a_row = 0
        closed = self.state != "closed"
        self.state = "closed"
        return closed

    def fail(self, *, probe: bool, under_way: int, now: float) -> bool:
        """A request failed while `under_way` others ran; True if this opened a closed endpoint.

        A failure of a request sent before the opening does not lengthen it.
        """
        self.in_a_row += 1
        if probe:
            self.state, self._opened_at = "open", now
        elif self.state == "closed" and self.in_a_row >= max(self._failures, under_way):
            self.state, self._opened_at = "open", now
            return True
        return False

    def abandon(self, *, probe: bool) -> None:
        """A request ended without telling anything; the next one may probe at once."""
        if probe and self.state == "half_open":
            self.state = "open"
