"""Our own payload: tasks and responses as the rewards define them, one or many.

One design choice: unknown keys are errors here (a misspelt `alias` would otherwise lower a score in
silence), and a message of refusal names the key and never repeats a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rewards.judge.server.body import RefusedError
from rewards.types import Response, Score, Span, Status, Task

MAX_ITEMS = 1024
_Name = Annotated[str, Field(max_length=4096)]
_Text = Annotated[str, Field(max_length=4_000_000)]
_Number = Annotated[int, Field(ge=0, le=2**53)]
_Names = Annotated[tuple[_Name, ...], Field(max_length=1024)]


class _Payload(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class SpanPayload(_Payload):
    """Characters [start, end) of the text of chunk number `chunk`."""

    chunk: _Number
    start: _Number
    end: _Number


class TaskPayload(_Payload):
    """The fields of `rewards.types.Task`."""

    id: _Name = ""
    question: _Text
    answer: _Text = Field(min_length=1)
    aliases: _Names = ()
    gold_entities: tuple[_Names, ...] = Field(default=(), max_length=4096)
    gold_chunks: tuple[_Number, ...] = Field(default=(), max_length=4096)
    gold_spans: tuple[SpanPayload, ...] = Field(default=(), max_length=4096)
    chunk_texts: dict[_Number, _Text] = Field(default_factory=dict, max_length=65_536)
    distractor_titles: tuple[_Name, ...] = Field(default=(), max_length=65_536)
    metadata: dict[_Name, Any] = Field(default_factory=dict, max_length=256)

    def task(self) -> Task:
        """The task these fields describe."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        spans = tuple(Span(s.chunk, s.start, s.end) for s in self.gold_spans)
        return Task(**{**fields, "gold_spans": spans})


class ResponsePayload(_Payload):
    """The fields of `rewards.types.Response`."""

    text: _Text
    status: Status = "completed"
    stop: _Name | None = None
    evaluation: bool = False


class ItemPayload(_Payload):
    """One response to score. Items of one request with the same `group` are one group: their
    totals are those after the reward's group rule."""

    task: TaskPayload
    response: ResponsePayload
    group: str | int | None = None


class ItemsPayload(_Payload):
    """Several responses to score."""

    items: tuple[ItemPayload, ...] = Field(min_length=1, max_length=MAX_ITEMS)


@dataclass(frozen=True, slots=True)
class Item:
    """One response to score."""

    task: Task
    response: Response
    group: str | int | None = None


def parse_own(body: Mapping[str, Any]) -> list[Item]:
    """The items of a single payload or of a list; RefusedError 422 that names the wrong key."""
    model = ItemsPayload if "items" in body else ItemPayload
    parsed = validated(model, body)
    items = parsed.items if isinstance(parsed, ItemsPayload) else (parsed,)
    return [_item(item) for item in items if isinstance(item, ItemPayload)]


def own_answer(score: Score) -> dict[str, Any]:
    """The score as JSON; `total` is null where nothing could be determined."""
    parts = {name: float(value) for name, value in score.parts.items()}
    return {
        "total": None if score.total is None else float(score.total),
        "parts": parts,
        "reason": score.reason,
    }


def validated(model: type[BaseModel], body: Mapping[str, Any]) -> BaseModel:
    """`model` from `body`; RefusedError 422 with the place and kind of each fault (at most 5)."""
    try:
        return model.model_validate(body)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False, include_input=False)
        places = [f"{'.'.join(map(str, one['loc']))[:100]}: {one['msg']}" for one in faults[:5]]
        more = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
        raise RefusedError(422, "; ".join(places) + more) from None


def _item(payload: ItemPayload) -> Item:
    sent = payload.response
    response = Response(sent.text, sent.status, sent.stop, sent.evaluation)
    return Item(payload.task.task(), response, payload.group)
