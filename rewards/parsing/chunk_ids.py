"""Chunk ids as a response writes them: `<CHUNK_n>` and nothing else.

One design choice: repeats are kept and a number that no chunk can have still counts as written,
because both must cost precision (LongRLVR, equation 6).
"""

from __future__ import annotations

import re

_CHUNK = re.compile(r"<CHUNK_([0-9]+)>")
_MOST_DIGITS = 18

NO_CHUNK = -1
"""Stands for an id of more than 18 digits; converting such numbers takes quadratic time."""


def chunk_ids(text: str) -> list[int]:
    """Numbers n of every `<CHUNK_n>` in the order written, repeats kept. Linear; never raises."""
    return [
        int(digits) if len(digits) <= _MOST_DIGITS else NO_CHUNK for digits in _CHUNK.findall(text)
    ]
