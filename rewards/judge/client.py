"""Chat completions from the judge's servers: bounded, timed, retried where that can help.

One design choice: the retry loop is ours and not stamina's, because each attempt may go to another
server, and how long to wait is the server's to say (Retry-After) or follows from its state.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from rewards.judge.attempt import MISCONFIGURED, RETRIED, post
from rewards.judge.completions import check_extra_body, request_body
from rewards.judge.config import JudgeConfig
from rewards.judge.counters import Counters
from rewards.judge.endpoints import Endpoint, Endpoints, Health, History, Ticket
from rewards.judge.places import Places
from rewards.judge.pools import CONNECT_S, Pools
from rewards.judge.types import ChatReply, ChatRequest, NoReplyError

PROBE_POLL_S = 0.1
"""How often a request looks whether somebody else's probe has ended."""


class ChatClient:
    """The judge's servers behind one call; usable from any event loop and thread.

    Keys are read here, once: KeyMissingError, or ValueError for an address or extra_body that
    cannot be used. `clock` gives seconds, `sleep` waits them.
    """

    def __init__(
        self,
        config: JudgeConfig,
        default_model: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        check_extra_body(config.extra_body)
        self._config = config
        self._default_model = default_model
        self._clock = clock
        self._sleep = sleep
        self._counters = Counters()
        self._endpoints = Endpoints(config, self._counters, clock)
        self._places = Places(config.concurrency)
        self._pools = Pools(min(CONNECT_S, config.request_timeout_s))
        # Of its own: draws from the global generator would change what a seeded run samples.
        self._jitter = random.Random()

    async def chat(self, request: ChatRequest, deadline_s: float | None = None) -> ChatReply:
        """The judge's reply within `deadline_s` seconds (the recipe's if None), waiting included.

        Raises NoReplyError with one of the reasons of `NoReplyReason`, nothing else.
        """
        limit_s = self._config.deadline_s if deadline_s is None else deadline_s
        self._counters.add("requests")
        try:
            async with asyncio.timeout(limit_s):
                reply = await self._attempts(request, self._clock() + limit_s)
        except TimeoutError:
            self._counters.add("failed/deadline")
            raise NoReplyError("deadline", f"no reply within {limit_s:g} s") from None
        except NoReplyError as error:
            self._counters.add(f"failed/{error.reason}")
            raise
        self._counters.add("replies")
        self._counters.add("prompt_tokens", reply.prompt_tokens)
        self._counters.add("completion_tokens", reply.completion_tokens)
        return reply

    def counters(self) -> dict[str, float]:
        """Sums since the start.

        requests, replies, failed/REASON: of `chat`; attempts, retries, attempt_failed/REASON: of
        HTTP; prompt_tokens, completion_tokens: as the servers report; waiting_s: for a place;
        attempt_s: under way; in_flight_max: the most at a time; breaker_opened.
        """
        return self._counters.read()

    def health(self) -> dict[str, Health]:
        """State of each server by its address."""
        return self._endpoints.health()

    async def aclose(self) -> None:
        """Close all connections; the client may be used again."""
        await self._pools.aclose()

    async def _attempts(self, request: ChatRequest, deadline: float) -> ChatReply:
        history = History()
        for _ in range(self._config.attempts):
            await self._pause(history, deadline)
            reply = await self._attempt(request, history, deadline)
            if reply is not None:
                return reply
        assert history.last is not None
        raise history.last

    async def _pause(self, history: History, deadline: float) -> None:
        """Wait between two attempts, without holding a place."""
        bound = self._endpoints.pause_bound_s(history)
        if bound and history.last is not None:
            wait = self._jitter.uniform(0.0, bound)
            if self._clock() + wait >= deadline:
                raise history.last
            await self._sleep(wait)

    async def _attempt(
        self, request: ChatRequest, history: History, deadline: float
    ) -> ChatReply | None:
        """The reply; None if the attempt failed in a way that allows another."""
        started = self._clock()
        await self._places.acquire(first=history.last is not None)
        try:
            ticket = await self._ticket(history, deadline)
            self._counters.add("waiting_s", ticket.sent_at - started)
            return await self._ask(request, ticket, history)
        finally:
            self._places.release()

    async def _ticket(self, history: History, deadline: float) -> Ticket:
        """Leave to ask a server, waiting for the first that recovers.

        The place is kept meanwhile: there is no server that another request could use it for, and
        the line behind it need not wake.
        """
        while not isinstance(found := self._endpoints.take(history), Ticket):
            now = self._clock()
            wait = PROBE_POLL_S if found is None else found - now
            if now + wait >= deadline:
                raise history.last or NoReplyError(
                    "no_endpoint", "every server is left out for longer than the deadline"
                )
            await self._sleep(wait)
        return found

    async def _ask(
        self, request: ChatRequest, ticket: Ticket, history: History
    ) -> ChatReply | None:
        one = ticket.endpoint
        body = request_body(
            request, one.model or request.model or self._default_model, self._config.extra_body
        )
        settled = False
        try:
            reply = await self._attempt_at(one, body)
            settled = True
            self._endpoints.succeeded(ticket)
            return reply
        except NoReplyError as error:
            settled = True
            self._endpoints.failed(ticket, error, history)
            if error.reason in RETRIED | MISCONFIGURED:
                return None
            raise
        finally:
            self._counters.add("attempt_s", self._clock() - ticket.sent_at)
            if not settled:
                self._endpoints.abandoned(ticket)

    async def _attempt_at(self, one: Endpoint, body: bytes) -> ChatReply:
        async with self._pools.client(one.url, proxied=one.proxied) as client:
            answer = await post(
                client,
                f"{one.url}/chat/completions",
                one.headers,
                body,
                self._config.request_timeout_s,
            )
        return answer.reply()
