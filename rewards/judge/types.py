"""What the parts of the judge layer hand each other: a request, a reply, or no reply.

One design choice: "no reply" is an exception with a short reason from a closed list, so that
whoever counts reasons never counts free text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

NoReplyReason = Literal[
    "connect",
    "timeout",
    "deadline",
    "rate_limited",
    "server_error",
    "refused_request",
    "unauthorised",
    "not_found",
    "bad_json",
    "empty",
    "too_large",
    "no_endpoint",
]


class NoReplyError(Exception):
    """No usable reply; `reason` is counted, `detail` is for the log and holds no contents."""

    def __init__(self, reason: NoReplyReason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One chat completion; `model` is the name the protocol or the recipe gives."""

    messages: tuple[Mapping[str, str], ...]
    model: str
    temperature: float
    max_tokens: int
    response_format: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The judge's own words. `reasoning` is what a server split off (reasoning_content)."""

    content: str
    reasoning: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
