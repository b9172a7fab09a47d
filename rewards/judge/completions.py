"""The two JSON bodies of a chat completion: the request written, the reply read.

One design choice: reading is strict. Several choices, a content that is not text, or an `error`
beside status 200 are "bad_json", because a guess here would be a verdict nobody gave.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

from rewards.judge.types import ChatReply, ChatRequest, NoReplyError

OURS = ("messages", "model", "n", "stream")
"""Keys of the request that `extra_body` must not set: they would change what a reply is."""
_CODE = re.compile(r"[a-z_]{1,40}")


def check_extra_body(extra: Mapping[str, Any]) -> None:
    """Raise ValueError if `extra_body` sets a key that is ours."""
    taken = sorted(set(extra) & set(OURS))
    if taken:
        raise ValueError(
            f"[outcome.judge] extra_body sets {', '.join(taken)}, which the judge sets itself; "
            "delete it there (the model is named by `model`)"
        )


def request_body(request: ChatRequest, model: str, extra: Mapping[str, Any]) -> bytes:
    """The JSON of `request` for the server's `model`; `extra` wins over what stands in it.

    Lone surrogates, which JSON in UTF-8 cannot hold, become question marks. `max_tokens` is left
    out where `extra` names its successor `max_completion_tokens`: servers refuse both together.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": list(request.messages),
        "temperature": request.temperature,
        "max_tokens": request.max_tokens,
    }
    if request.response_format is not None:
        body["response_format"] = request.response_format
    body.update(extra)
    if "max_completion_tokens" in extra:
        body.pop("max_tokens")
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        body["messages"] = [
            {key: text.encode("utf-8", "replace").decode() for key, text in message.items()}
            for message in request.messages
        ]
        return orjson.dumps(body)


def read_reply(payload: bytes) -> ChatReply:
    """The reply in a body of status 200; NoReplyError "bad_json" or "empty"."""
    try:
        body = orjson.loads(payload)
    except orjson.JSONDecodeError:
        raise NoReplyError("bad_json", f"body of {len(payload)} bytes is not JSON") from None
    if not isinstance(body, dict):
        raise NoReplyError("bad_json", f"body is a JSON {type(body).__name__}, not an object")
    choices = body.get("choices")
    if not isinstance(choices, list) or len(choices) != 1:
        found = f"{len(choices)} choices" if isinstance(choices, list) else "no choices"
        raise NoReplyError("bad_json", f"{found}, where one was asked for{error_code(body)}")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise NoReplyError("bad_json", "the choice holds no message")
    content = _text(message, "content") or _text(message, "refusal") or ""
    reasoning = _text(message, "reasoning_content") or _text(message, "reasoning")
    if not content.strip() and not (reasoning or "").strip():
        raise NoReplyError("empty", "the message holds neither content nor reasoning")
    finish = choice.get("finish_reason")
    usage = body.get("usage")
    return ChatReply(
        content=content,
        reasoning=reasoning,
        finish_reason=finish if isinstance(finish, str) else None,
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
    )


def error_code(body: object) -> str:
    """` (CODE)` of an OpenAI error body, or nothing.

    The message of an error is never used: servers quote prompts and parts of keys in it.
    """
    error = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(error, dict):
        for name in ("code", "type"):
            value = error.get(name)
            if isinstance(value, str) and _CODE.fullmatch(value):
                return f" ({value})"
    return ""


def _text(message: Mapping[str, Any], key: str) -> str | None:
    value = message.get(key)
    if value is None or isinstance(value, str):
        return value
    if key in ("reasoning", "refusal"):
        return None
    raise NoReplyError("bad_json", f"{key} is a JSON {type(value).__name__}, not text")


def _count(usage: object, key: str) -> int:
    value = usage.get(key) if isinstance(usage, dict) else None
    return value if type(value) is int and value >= 0 else 0
