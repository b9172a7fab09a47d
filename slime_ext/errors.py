"""Errors meant for the person at the keyboard, and the remedy for a misspelt word.

One design choice: one base class marks every error whose message already says what is wrong, where,
and what to type instead; the command line prints such a message alone and a traceback for the rest.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ExplainedError(Exception):
    """An error that needs no traceback."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A remedy for an unknown word: the nearest known one, or the list of all."""
    words = sorted(known)
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(words)}"
