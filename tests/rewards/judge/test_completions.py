"""Reading a reply: never a guess, and nothing but NoReplyError for any body."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.judge.completions import error_code, read_reply, request_body
from rewards.judge.types import ChatReply, ChatRequest, NoReplyError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "usage", "reasoning_content", "error"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_gives_words_or_no_reply(body: Any) -> None:
    try:
        reply = read_reply(json.dumps(body).encode())
        words = reply.content + (reply.reasoning or "")
    except NoReplyError as error:
        words = {"bad_json": "no", "empty": "no"}.get(error.reason, "")
    assert words.strip()


@given(st.binary(max_size=80))
def test_any_bytes_give_no_reply(body: bytes) -> None:
    with pytest.raises(NoReplyError):
        read_reply(body)


@given(st.text(min_size=1).filter(str.strip), st.integers(0, 10**9))
def test_words_arrive_unchanged(words: str, tokens: int) -> None:
    body = {
        "choices": [{"message": {"content": words}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": True},
    }
    payload = json.dumps(body, ensure_ascii=False).encode()
    assert read_reply(payload) == ChatReply(words, None, "length", tokens, 0)


@given(st.text(st.characters(), max_size=40))
def test_any_text_can_be_asked_about(words: str) -> None:
    request = ChatRequest(({"role": "user", "content": words},), "m", 0.0, 8)
    sent = json.loads(request_body(request, "there", {}))
    assert sent["messages"][0]["content"] == words.encode("utf-8", "replace").decode()
    assert sent["model"] == "there"


def test_the_response_format_is_sent() -> None:
    request = ChatRequest((), "m", 0.0, 8, {"type": "json_schema"})
    assert json.loads(request_body(request, "m", {}))["response_format"] == {"type": "json_schema"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"error": {"code": "context_length_exceeded"}}, " (context_length_exceeded)"),
        ({"error": {"code": 400, "type": "bad_request"}}, " (bad_request)"),
        ({"object": "error", "type": "not_found"}, " (not_found)"),
        ({"error": {"code": "sk-4Ab", "type": "The prompt was: x"}}, ""),
        ({"error": "text"}, ""),
        ([], ""),
    ],
)
def test_only_a_plain_code_of_an_error_is_shown(body: object, code: str) -> None:
    assert error_code(body) == code
