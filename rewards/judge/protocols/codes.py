"""The code a verdict must carry: six hexadecimal digits the candidate's text cannot hold.

One design choice: the code is derived from the question, the gold answer and the candidate's own
text, and is then checked to be absent from them. No quotation of the candidate, however trimmed,
re-cased or re-spaced, can therefore look like a verdict, and the prompt stays reproducible.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import unicodedata

from rewards.types import Task

CODE_LENGTH = 6
"""16.8 million codes: a candidate of 160,000 digits excludes at most one in a hundred of them, and
six characters are few enough for a small judge to copy."""

_NOT_ALPHANUMERIC = re.compile(r"[^0-9a-z]+")


def make_code(version: str, task: Task, answer: str) -> str:
    """The code for one judging of `answer`; linear in the texts, never raises.

    It holds a digit and a letter other than "e", so that nothing writes it as a number.
    """
    parts = (version, task.id, task.question, *task.answers, answer)
    seed = hashlib.sha256()
    for part in parts:
        data = part.encode(errors="surrogatepass")
        seed.update(len(data).to_bytes(8, "big") + data)
    known = "\n".join(_squeezed(part) for part in parts)
    for attempt in itertools.count():
        tried = seed.copy()
        tried.update(attempt.to_bytes(8, "big"))
        code = tried.hexdigest()[:CODE_LENGTH]
        if code not in known and not code.isalpha() and not set(code).isdisjoint("abcdf"):
            return code
    raise AssertionError("unreachable: itertools.count does not end")


def _squeezed(text: str) -> str:
    """Letters and digits only, compatibility-composed and casefolded, nothing between them."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _NOT_ALPHANUMERIC.sub("", text.casefold())
