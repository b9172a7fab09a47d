"""A judge: is this answer right? Puts it to a language model, once per distinct question.

    judge = Judge(JudgeConfig(endpoints=[{"url": "http://HOST:30000/v1"}]))
    decided = await judge.verdict(task, answer)

One design choice: the key of a verdict is the whole request, not the answer alone. Whatever could
change what the judge says (a word of the prompt, a gold chunk, the model, a sampling setting) makes
another key, so an old verdict can never stand in for a new question.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rewards.judge.cache import open_cache
from rewards.judge.client import ChatClient
from rewards.judge.config import JudgeConfig
from rewards.judge.protocols.registry import make_protocol
from rewards.judge.single_flight import SingleFlight
from rewards.judge.store import VerdictRecord
from rewards.judge.turns import Turns
from rewards.judge.types import ChatRequest, NoReplyError
from rewards.types import Task
from rewards.verdicts import Verdict, no_verdict, verdict

_GRACE_S = 1.0
"""A call ends by its deadline; whoever waits for it waits this much longer."""


class Judge:
    """Asks one judge model, on any number of endpoints, from any event loop and thread."""

    def __init__(self, config: JudgeConfig) -> None:
        """Raises ValueError for settings with which no verdict could ever be had."""
        if not config.endpoints:
            raise ValueError(
                "outcome.judge.endpoints is empty: no judge to ask; write "
                "--set 'outcome.judge.endpoints=[{url=\"http://HOST:30000/v1\"}]'"
            )
        self._config = config
        self._protocol = protocol = make_protocol(config.protocol, config.structured)
        self._model = config.model or protocol.model
        self._format = protocol.response_format()
        if config.structured and self._format is None:
            raise ValueError(
                f"protocol {protocol.name!r} has no structured form; write "
                "--set outcome.judge.structured=false"
            )
        self._temperature = (
            protocol.temperature if config.temperature is None else config.temperature
        )
        self._max_tokens = config.max_tokens or protocol.max_tokens
        self._settings = self._settings_digest()
        self._client = ChatClient(config, self._model)
        self._cache = open_cache(config.cache)
        self._flight: SingleFlight[Verdict] = SingleFlight()
        self._turns = Turns()
        self._lock = threading.RLock()
        self._counts: Counter[str] = Counter()
        self._latency_s = 0.0

    async def verdict(self, task: Task, answer: str) -> Verdict:
        """1 where the judge finds `answer` right, 0 where not, or no verdict with the reason.

        Never raises for what a server does or leaves undone. An empty answer is wrong without a
        call. An equal question that was decided before, or is being asked at this moment by any
        task or thread of this process, costs no call.
        """
        if not answer.strip():
            return self._counted(verdict(0.0), "empty_answers")
        await self._turns.take()
        messages = self._protocol.messages(task, answer)
        key = self.key(messages)
        try:
            async with asyncio.timeout(self._config.deadline_s + _GRACE_S):
                decided, shared = await self._flight.run(
                    key, lambda: self._decide(key, messages, task, answer)
                )
        except TimeoutError:
            return self._counted(no_verdict("deadline"))
        return self._counted(decided, *(("deduplicated",) if shared else ()))

    def key(self, messages: Sequence[Mapping[str, str]]) -> bytes:
        """16 bytes that name the request: settings, model, prompt version and every message."""
        digest = self._settings.copy()
        # Escaped, so that a lone surrogate in an answer has bytes too.
        digest.update(json.dumps([dict(sorted(one.items())) for one in messages]).encode())
        return digest.digest()

    def counters(self) -> dict[str, float]:
        """Sums since the start: `verdicts/right` (0.5 and above), `verdicts/wrong`,
        `no_verdict/REASON` (these three add up to the verdicts asked of this judge), of which
        `empty_answers`, `cache_hits` and `deduplicated` needed no call; `asked` calls and their
        `latency_s`; and those of the client."""
        with self._lock:
            counts = {name: float(value) for name, value in self._counts.items()}
            counts["latency_s"] = self._latency_s
        return self._client.counters() | counts

    async def aclose(self) -> None:
        """Close the connections of this loop and write the cache."""
        await self._client.aclose()
        await asyncio.to_thread(self._cache.close)

    async def _decide(
        self, key: bytes, messages: tuple[Mapping[str, str], ...], task: Task, answer: str
    ) -> Verdict:
        known = self._cache.get(key)
        if known is not None:
            self._count("cache_hits")
            return known
        self._count("asked")
        request = ChatRequest(
            messages, self._model, self._temperature, self._max_tokens, self._format
        )
        began = time.monotonic()
        try:
            reply = await self._client.chat(request, self._config.deadline_s)
        except NoReplyError as error:
            return no_verdict(error.reason)
        finally:
            with self._lock:
                self._latency_s += time.monotonic() - began
        read = self._protocol.read_structured if self._format else self._protocol.read
        decided = read(reply, task, answer)
        if decided.value is not None:
            prompt = self._protocol.version
            record = VerdictRecord(
                self._model, prompt, reply.prompt_tokens, reply.completion_tokens
            )
            self._cache.put(key, decided, record)
        return decided

    def _settings_digest(self) -> hashlib.blake2b:
        """The part of every key that does not depend on the question. Addresses are no part of it:
        a judge may move. The names its servers know the model by are: they may hide another."""
        config, protocol = self._config, self._protocol
        settings: dict[str, Any] = {
            "models": sorted({one.model or self._model for one in config.endpoints}),
            "prompt": [protocol.name, protocol.version],
            "temperature": self._temperature,
            "max_tokens": self._max_tokens,
            "format": self._format,
            "extra_body": config.extra_body,
        }
        return hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=16)

    def _counted(self, decided: Verdict, *also: str) -> Verdict:
        if decided.value is None:
            self._count(f"no_verdict/{decided.reason}", *also)
        else:
            self._count("verdicts/right" if decided.value >= 0.5 else "verdicts/wrong", *also)
        return decided

    def _count(self, *names: str) -> None:
        with self._lock:
            self._counts.update(names)


def rates(counts: Mapping[str, float]) -> dict[str, float]:
    """Rates from `counters`, or from what they grew by: `latency_mean_s` of a call,
    `cache_hit_rate` and `saved_rate` (cache, deduplication and empty answers) over the verdicts."""
    verdicts = sum(
        value for name, value in counts.items() if name.startswith(("verdicts/", "no_verdict/"))
    )
    found: dict[str, float] = {}
    if asked := counts.get("asked", 0.0):
        found["latency_mean_s"] = counts.get("latency_s", 0.0) / asked
    if verdicts:
        hits = counts.get("cache_hits", 0.0)
        saved = hits + counts.get("deduplicated", 0.0) + counts.get("empty_answers", 0.0)
        found |= {"cache_hit_rate": hits / verdicts, "saved_rate": saved / verdicts}
    return found
