"""The payloads of the released LongTraceRL reward server, in and out.

One design choice: how a response is scored is the recipe's, not the payload's; the payload says
what was answered and what the gold is. Its ratio only tells training (above 0) from evaluation (0).

Facts of the released code (its launch_server.py and client): a request has `label`,
`extra_reward_info` (`question`, `dataset_name`, `rubrics`, `rubric_reward_ratio`, ...) and either
`history` (messages; the last one is the assistant's) or `response` (text with its thinking part).
It is answered by `reward`, `outcome_reward` and `rubric_reward`, raw, as its client forms the group
totals. The client asks again on any status but 2xx, so "no verdict" is 503.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rewards.judge.server.body import RefusedError
from rewards.judge.server.payloads import Item, own_answer, validated
from rewards.parsing.families import Family
from rewards.types import Response, Score, Status, Task

_Name = Annotated[str, Field(max_length=4096)]
_Text = Annotated[str, Field(max_length=4_000_000)]


class _Released(BaseModel):
    """Clients send further keys of their own; they mean nothing here."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class ExtraInfo(_Released):
    """`extra_reward_info`; further keys (how the rubric counts) are the recipe's business."""

    question: _Text
    dataset_name: _Name
    rubrics: tuple[int | _Name, ...] = Field(default=(), max_length=4096)
    rubric_reward_ratio: float = Field(ge=0, le=1)


class Message(_Released):
    """One message of a history; the released client marks what is no ordinary answer."""

    role: _Name
    content: _Text | None = None
    reasoning_content: _Text | None = None
    ill_formed_content: _Text | None = None
    truncated_content: _Text | None = None
    aborted_content: _Text | None = None


class ReleasedPayload(_Released):
    """A request in history mode or response mode; history counts where both are given."""

    label: _Text = Field(min_length=1)
    extra_reward_info: ExtraInfo
    history: tuple[Message, ...] | None = Field(default=None, min_length=1, max_length=1024)
    response: _Text | None = None


def is_released(body: Mapping[str, Any]) -> bool:
    """Whether a body is meant for the released server."""
    return "extra_reward_info" in body or "label" in body


def parse_released(body: Mapping[str, Any], family: Family) -> Item:
    """The task and response of a released payload; RefusedError 422 names the wrong key."""
    payload = validated(ReleasedPayload, body)
    assert isinstance(payload, ReleasedPayload)
    if payload.history is not None:
        response = _of_history(payload.history[-1], family)
    elif payload.response is not None:
        response = _of_text(payload.response, family)
    else:
        raise RefusedError(422, "history or response: one of them is required")
    info = payload.extra_reward_info
    evaluation = info.rubric_reward_ratio == 0
    return Item(
        _task(payload.label, info),
        Response(response.text, response.status, response.stop, evaluation),
    )


def released_answer(score: Score, evaluation: bool) -> dict[str, Any]:
    """The released keys beside ours, for a determined score.

    `rubric_reward` is before the group's maximum, as the released client divides by it itself; it
    is 0 in evaluation, where the released server measures none.
    """
    ours = own_answer(score)
    parts = ours["parts"]
    rubric = parts.get("rubric_raw", parts.get("chunk_fbeta", 0.0))
    return {
        "reward": ours["total"],
        "outcome_reward": parts.get("outcome", ours["total"]),
        "rubric_reward": 0.0 if evaluation else rubric,
        **ours,
    }


def _task(label: str, info: ExtraInfo) -> Task:
    rubrics = info.rubrics
    metadata = {"dataset_name": info.dataset_name}
    if info.dataset_name != "longrlvr":
        entities = tuple((str(name),) for name in rubrics)
        return Task("", info.question, label, gold_entities=entities, metadata=metadata)
    chunks = tuple(int(n) for n in rubrics if isinstance(n, int) or n.isdecimal())
    if len(chunks) != len(rubrics):
        raise RefusedError(
            422, "extra_reward_info.rubrics: the rubrics of longrlvr are chunk numbers"
        )
    return Task("", info.question, label, gold_chunks=chunks, metadata=metadata)


def _of_history(last: Message, family: Family) -> Response:
    """The last message as sampled text. No answer of the assistant's is an empty response."""
    if last.role != "assistant":
        return Response("")
    marked: tuple[tuple[str | None, Status], ...] = (
        (last.truncated_content, "truncated"),
        (last.aborted_content, "aborted"),
    )
    for text, status in marked:
        if text is not None:
            return Response(text, status)
    if last.ill_formed_content is not None:
        return _of_text(last.ill_formed_content, family)
    content = last.content or ""
    if not family.thinking:
        return Response(content)
    closed = family.close_tag if last.content is not None else ""
    return Response(f"{family.open_tag}{last.reasoning_content or ''}{closed}{content}")


def _of_text(text: str, family: Family) -> Response:
    """Text that may end in its stop token."""
    for stop in family.stop_tokens:
        if text.endswith(stop):
            return Response(text.removesuffix(stop), stop=stop)
    return Response(text)
