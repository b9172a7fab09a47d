"""The servers of one judge: which is asked next, and which are left out for now.

One design choice: a wrong key or a wrong address opens the breaker as an outage does. Such a server
answers at once, so it always has the fewest requests under way and would otherwise draw them all.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

import httpx

from rewards.judge.attempt import MISCONFIGURED, RETRIED, AttemptError
from rewards.judge.backoff import bound_s
from rewards.judge.breaker import Breaker
from rewards.judge.config import EndpointConfig, JudgeConfig
from rewards.judge.counters import Counters
from rewards.judge.keys import read_key
from rewards.judge.pools import is_proxied
from rewards.judge.types import NoReplyError, NoReplyReason

log = logging.getLogger("rewards.judge")

SICK = RETRIED - {"rate_limited"} | MISCONFIGURED | {"bad_json", "too_large"}
"""Failures that count against an endpoint; 429 rests it instead, 400 is the request's own."""
LATELY_S = 1.0
"""A server that answered within so many seconds before a few error statuses is taken for up."""
Health = Literal["closed", "open", "half_open", "resting"]


@dataclass(eq=False)
class Endpoint:
    """One server. `headers` hold the key; httpx hides it in their repr."""

    url: str
    model: str | None
    headers: httpx.Headers
    proxied: bool
    breaker: Breaker
    in_flight: int = 0
    rest_until: float = 0.0
    last_success: float = -1.0
    last_chosen: int = 0
    misconfigured: NoReplyReason | None = None
    named: set[NoReplyReason] = field(default_factory=set)

    def ready_at(self) -> float | None:
        """When it may be asked; None while a probe is under way."""
        ready = self.breaker.ready_at()
        return None if ready is None else max(ready, self.rest_until)


@dataclass
class Ticket:
    """One attempt at one endpoint."""

    endpoint: Endpoint
    probe: bool
    sent_at: float


@dataclass
class History:
    """What one request has met: failures by server, and servers it must not ask again."""

    failures: dict[Endpoint, int] = field(default_factory=dict)
    ruled_out: dict[Endpoint, NoReplyReason] = field(default_factory=dict)
    last: NoReplyError | None = None
    last_ticket: Ticket | None = None


class Endpoints:
    """All servers of a judge, safe from any thread. Raises KeyMissingError and ValueError."""

    def __init__(self, config: JudgeConfig, counters: Counters, clock: Callable[[], float]) -> None:
        if not config.endpoints:
            raise ValueError(
                '[outcome.judge] names no server; add endpoints = [{ url = "http://HOST:PORT/v1" }]'
            )
        self._all = [_endpoint(one, config) for one in config.endpoints]
        self._longest_rest_s = config.deadline_s
        self._breaker_failures = config.breaker_failures
        self._counters = counters
        self._clock = clock
        self._chosen = 0
        # Re-entrant for the same reason as in places.py.
        self._lock = threading.RLock()

    def take(self, history: History) -> Ticket | float | None:
        """A ticket for the best server that is ready; else the time at which the first will be,
        None if that hangs on a probe under way.

        Best is: fewest failures of this request, then fewest requests under way, then longest not
        asked. Raises NoReplyError if every server is out for a reason that waiting does not end.
        """
        now = self._clock()
        with self._lock:
            usable = [one for one in self._all if one not in history.ruled_out]
            asleep = [one for one in usable if (at := one.ready_at()) is None or at > now]
            awake = [one for one in usable if one not in asleep]
            if awake:
                return self._start(min(awake, key=lambda one: self._rank(one, history)), history)
            waited_for = [one for one in asleep if not one.misconfigured]
            if not waited_for:
                raise self._hopeless(history)
            moments = [at for one in waited_for if (at := one.ready_at()) is not None]
            return min(moments, default=None)

    def pause_bound_s(self, history: History) -> float:
        """Longest wait in seconds before the next attempt; 0 where none is needed.

        None is needed for a first attempt, where another server is ready that failed this request
        less often, and where a server said itself when to come back (`take` waits for that).
        """
        error, ticket = history.last, history.last_ticket
        if error is None or ticket is None or error.reason in MISCONFIGURED:
            return 0.0
        if isinstance(error, AttemptError) and error.retry_after_s is not None:
            return 0.0
        one, now = ticket.endpoint, self._clock()
        with self._lock:
            failures = history.failures[one]
            for other in self._all:
                ready = other.ready_at()
                if (
                    other not in history.ruled_out
                    and history.failures.get(other, 0) < failures
                    and ready is not None
                    and ready <= now
                ):
                    return 0.0
            passing = error.reason != "rate_limited" and one.last_success > ticket.sent_at
            # The last request of a batch has no others beside it to tell by.
            if error.reason == "server_error" and one.breaker.in_a_row < self._breaker_failures:
                passing = passing or now - one.last_success < LATELY_S
            return bound_s(failures, answers_others=passing)

    def succeeded(self, ticket: Ticket) -> None:
        """The server answered as asked."""
        with self._lock:
            one = self._end(ticket)
            one.last_success = self._clock()
            self._alive(one)

    def failed(self, ticket: Ticket, error: NoReplyError, history: History) -> None:
        """The attempt failed; notes it for the server and for the request."""
        self._counters.add(f"attempt_failed/{error.reason}")
        with self._lock:
            one = self._end(ticket)
            history.last, history.last_ticket = error, ticket
            history.failures[one] = history.failures.get(one, 0) + 1
            if error.reason in MISCONFIGURED:
                history.ruled_out[one] = error.reason
                self._name_once(one, error)
            if isinstance(error, AttemptError) and error.retry_after_s is not None:
                rest = min(error.retry_after_s, self._longest_rest_s)
                one.rest_until = max(one.rest_until, self._clock() + rest)
            if error.reason not in SICK:
                self._alive(one)
            elif one.breaker.fail(probe=ticket.probe, under_way=one.in_flight, now=self._clock()):
                self._counters.add("breaker_opened")
                log.warning("judge %s is left out for now: %s", one.url, error)

    def abandoned(self, ticket: Ticket) -> None:
        """The attempt was cancelled and tells nothing about the server."""
        with self._lock:
            self._end(ticket).breaker.abandon(probe=ticket.probe)

    def health(self) -> dict[str, Health]:
        """State of each server by its address."""
        now = self._clock()
        with self._lock:
            return {
                one.url: "resting"
                if one.breaker.state == "closed" and one.rest_until > now
                else one.breaker.state
                for one in self._all
            }

    def _start(self, one: Endpoint, history: History) -> Ticket:
        self._chosen += 1
        one.last_chosen = self._chosen
        one.in_flight += 1
        self._counters.add("attempts")
        if history.last is not None:
            self._counters.add("retries")
        self._counters.raise_to("in_flight_max", sum(each.in_flight for each in self._all))
        return Ticket(one, one.breaker.start(), self._clock())

    def _end(self, ticket: Ticket) -> Endpoint:
        ticket.endpoint.in_flight -= 1
        return ticket.endpoint

    def _alive(self, one: Endpoint) -> None:
        one.misconfigured = None
        if one.breaker.succeed():
            log.info("judge %s is back", one.url)

    def _name_once(self, one: Endpoint, error: NoReplyError) -> None:
        if error.reason not in one.named:
            remedy = "its key" if error.reason == "unauthorised" else "its url and model"
            log.error("judge %s: %s; check %s in [outcome.judge]", one.url, error, remedy)
        one.named.add(error.reason)
        one.misconfigured = error.reason

    def _hopeless(self, history: History) -> NoReplyError:
        if history.last is not None:
            return history.last
        reason = next(one.misconfigured for one in self._all if one.misconfigured)
        return NoReplyError(reason, "every server refused the last requests for this reason")

    @staticmethod
    def _rank(one: Endpoint, history: History) -> tuple[int, int, int]:
        return history.failures.get(one, 0), one.in_flight, one.last_chosen


def _endpoint(config: EndpointConfig, judge: JudgeConfig) -> Endpoint:
    address = config.address()
    host = _checked_host(address)
    key = read_key(config)
    headers: Mapping[str, str] = {
        "content-type": "application/json",
        "accept-encoding": "identity",
    }
    if key is not None:
        headers = {**headers, "authorization": f"Bearer {key.get_secret_value()}"}
    return Endpoint(
        url=address.rstrip("/"),
        model=config.model,
        headers=httpx.Headers(headers),
        proxied=is_proxied(urlsplit(address).scheme, host),
        breaker=Breaker(judge.breaker_failures, judge.breaker_reset_s),
    )


def _checked_host(url: str) -> str:
    """The host of a server's address; ValueError, which quotes no secret part, if unusable."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            f"the judge's url at {host} holds a user, a query or a fragment; give the address up "
            "to /v1 alone, and the key by key_env or key_file"
        )
    try:
        host.encode("idna")
        httpx.URL(url)
    except (httpx.InvalidURL, UnicodeError):
        host = ""
    if not host or parts.path.rstrip("/").endswith("/completions"):
        raise ValueError(
            f"{url} is not the address of a judge; give it up to /v1, e.g. http://judge:30000/v1"
        )
    return host
