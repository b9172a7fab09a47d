"""The three values every reward speaks: the task, the response, the score.

One design choice: an undetermined score is a type of its own (`total is None` with a `reason`),
never a number. A judge outage therefore cannot turn into a 0.0 on its way to the trainer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Status = Literal["completed", "truncated", "aborted", "failed"]


@dataclass(frozen=True, slots=True)
class Span:
    """Verbatim gold evidence: characters [start, end) of the text of chunk number `chunk`."""

    chunk: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Task:
    """What a reward may know about one question; built from one data row.

    `gold_chunks` are the numbers n of `<CHUNK_n>` as the prompt shows them. `gold_entities` lists
    each entity with all its aliases. `chunk_texts` maps chunk number to text, `distractor_titles`
    are the titles of the context's documents that are not gold.
    """

    id: str
    question: str
    answer: str
    aliases: tuple[str, ...] = ()
    gold_entities: tuple[tuple[str, ...], ...] = ()
    gold_chunks: tuple[int, ...] = ()
    gold_spans: tuple[Span, ...] = ()
    chunk_texts: Mapping[int, str] = field(default_factory=dict)
    distractor_titles: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answers(self) -> tuple[str, ...]:
        """The gold answer followed by its aliases."""
        return (self.answer, *self.aliases)


@dataclass(frozen=True, slots=True)
class Response:
    """One sampled response. `text` excludes the stop token, which is `stop` (None if not seen).

    `status` comes from the engine's finish reason: "length" is "truncated", a lost request is
    "aborted" or "failed". `evaluation` switches the training-only rules off (methods: section 1).
    """

    text: str
    status: Status = "completed"
    stop: str | None = None
    evaluation: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """Reward of one response: named parts and their total.

    `total is None` means undetermined: the sample leaves group statistics and loss and is counted
    under `reason`. With a number in `total`, `reason` says why it is special ("truncated",
    "ill_formed:no_close_tag", ...) or is None.
    """

    total: float | None
    parts: Mapping[str, float] = field(default_factory=dict)
    reason: str | None = None

    def with_total(self, total: float | None, **parts: float) -> Score:
        """A copy with another total and some parts added or replaced."""
        return replace(self, total=total, parts={**self.parts, **parts})


def undetermined(reason: str, **parts: float) -> Score:
    """A score without a number, counted under `reason`."""
    return Score(total=None, parts=parts, reason=reason)
