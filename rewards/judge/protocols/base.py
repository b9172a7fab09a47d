"""The interface of a judge protocol: a prompt of our own wording, and a strict reading.

One design choice: reading fails closed. A reply that does not hold exactly one verdict in the
protocol's form is "no verdict", whatever it seems to mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from rewards.judge.types import ChatReply
from rewards.types import Task
from rewards.verdicts import Verdict


class Protocol(ABC):
    """A way to ask whether an answer is right."""

    name: ClassVar[str]
    version: str
    """Changes whenever a word of the prompt or a rule of the reading changes; part of every record
    and of the cache key."""
    model: ClassVar[str]
    """The model the protocol's paper used."""
    temperature: ClassVar[float]
    max_tokens: ClassVar[int]

    def __init__(self, structured: bool = False) -> None:
        """`structured` asks for a JSON object by `response_format` in place of the own form."""
        self.structured = structured
        if structured:
            self.version = f"{self.version}+json"

    @abstractmethod
    def messages(self, task: Task, answer: str) -> tuple[Mapping[str, str], ...]:
        """The chat put to the judge; the candidate's `answer` stands fenced inside it."""

    @abstractmethod
    def read(self, reply: ChatReply, task: Task, answer: str) -> Verdict:
        """1, 0, or no verdict with one of the reasons "unparsable", "several_verdicts", "refusal",
        "truncated", "empty". Never raises; linear in the reply.

        `task` and `answer` are those `messages` was given: words of the candidate that the judge
        quotes are not the judge's verdict.
        """

    def response_format(self) -> Mapping[str, Any] | None:
        """The json_schema response format a structured protocol asks for; None for another."""
        return None

    def read_structured(self, reply: ChatReply, task: Task, answer: str) -> Verdict:
        """Like `read`, for a reply that was asked for by `response_format`."""
        return self.read(reply, task, answer)
