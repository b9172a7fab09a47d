"""What of a reply is the judge's own word, and why a reply decides nothing.

One design choice: a verdict that stands only in the reasoning, or in a reply that was cut, is no
verdict: reasoning weighs both sides, and a cut reply may have gone on to the other one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rewards.judge.types import ChatReply
from rewards.verdicts import Verdict, no_verdict, verdict

THINKING_TAGS = (("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"))
"""As Qwen3 and DeepSeek, some others, and Mistral write them when the server splits nothing off."""

_REFUSAL = re.compile(
    r"\b(?:i|we)(?:'m| am| are)?+ (?:cannot|can't|can not|won't|will not|unable|not able)\b"
    r"|\bi(?:'m| am) sorry\b|\bi apologi[sz]e\b|\bas an ai\b|抱歉|无法|不能协助",
    re.IGNORECASE,
)
_REFUSAL_WINDOW = 300
"""Characters searched for a refusal; it opens a reply. It only names the reason."""


def own_words(content: str) -> str:
    """`content` after its thinking block, stripped. An unclosed block leaves nothing.

    Templates write the opening tag into the prompt, so that a closing tag alone ends a block too.
    """
    text = content.strip()
    for opening, closing in THINKING_TAGS:
        _, closed, after = text.rpartition(closing)
        if closed:
            text = after.strip()
        elif text.startswith(opening):
            return ""
    return text


def decide(reply: ChatReply, find: Callable[[str], Sequence[float | None]]) -> Verdict:
    """The verdict of a reply in whose own words `find` sees exactly one.

    `find` returns one value per verdict it sees, None for one it cannot make out. Reasons of no
    verdict: "truncated", "refusal", "empty", "several_verdicts", "unparsable". Never raises.
    """
    if reply.finish_reason == "length":
        return no_verdict("truncated")
    if reply.finish_reason == "content_filter":
        return no_verdict("refusal")
    words = own_words(reply.content)
    if not words:
        thought = reply.content.strip() or (reply.reasoning or "").strip()
        return no_verdict("unparsable" if thought else "empty")
    found = find(words)
    if len(found) > 1:
        return no_verdict("several_verdicts")
    if found and found[0] is not None:
        return verdict(found[0])
    if not found and _REFUSAL.search(words[:_REFUSAL_WINDOW].replace("’", "'")):
        return no_verdict("refusal")
    return no_verdict("unparsable")
