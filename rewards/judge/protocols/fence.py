"""Put foreign text into a prompt so that it stays what it is: material to be judged.

One design choice: nothing is deleted. What a reader would not see, or a chat template would take
for a control token, is written out visibly, so that the judge sees that it was there.
"""

from __future__ import annotations

import re

import regex

ANSWER_HEAD = 4_000
ANSWER_TAIL = 2_000
"""Characters kept of an overlong answer. Gold answers are short; the end is where a response that
never stopped would state its own."""

_UNSEEN = regex.compile(
    r"([\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0"
    r"\ufe00-\ufe0f\U000e0100-\U000e01ef])(?<!\n)\1*+"
)
"""Control, format, private, surrogate and unassigned characters, separators of lines, and the
letters and marks that have no shape: fillers, joiners, blanks, variation selectors."""
_ANGLE = str.maketrans({"<": "‹", ">": "›"})
_BRACKET_TOKEN = re.compile(r"\[(/?[A-Z_]{3,20})\]")
_LINE_ENDS = re.compile(r"\r\n?")


def visible(text: str) -> str:
    """`text` with everything invisible written as ⟨U+200B⟩ and control tokens taken apart.

    Runs of one invisible character become one mark with a count. Angle brackets become ‹ ›, which
    disarms <|im_end|>, </s>, <think> and their like; [INST] becomes ⟦INST⟧. Lone surrogates, which
    could not be sent, are written out too. Linear; never raises; no line end but \\n is left.
    """
    text = _LINE_ENDS.sub("\n", text).replace("\t", "    ").translate(_ANGLE)
    text = _BRACKET_TOKEN.sub(r"⟦\1⟧", text)
    shown: str = _UNSEEN.sub(_written_out, text)
    return shown


def _written_out(match: regex.Match[str]) -> str:
    times = f" x {len(match[0]):,}" if len(match[0]) > 1 else ""
    return f"⟨U+{ord(match[1]):04X}{times}⟩"


def shortened(text: str, head: int = ANSWER_HEAD, tail: int = ANSWER_TAIL) -> str:
    """The first `head` and last `tail` characters with a note of what is missing between them."""
    missing = len(text) - head - tail
    if missing <= 0:
        return text
    note = f"\n[here {missing:,} characters are left out]\n"
    return text[:head] + note + (text[-tail:] if tail else "")


def fenced(label: str, text: str) -> str:
    """`text` between two lines that name it.

    The label of a candidate's text holds a code which the text does not, so that it cannot close
    its fence. `text` has been through `visible`, so that "\\n" is its only line end.
    """
    return f"=== {label} begins ===\n{text}\n=== {label} ends ==="
