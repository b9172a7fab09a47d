"""The entity matcher of the released LongTraceRL reward server, mistakes included.

One design choice: it exists to reproduce published runs and to be compared with, so nothing in it
is mended: "Ur" is found in "natural", accents and Cyrillic vanish, an empty entity is everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_KEPT = re.compile(r"[a-zA-Z0-9_]+|[\u4e00-\u9fff]")


def legacy_normalise(text: str) -> str:
    """Lower-case; ASCII words and single CJK ideographs joined by one space (methods, 1)."""
    return " ".join(_KEPT.findall(text.lower().strip()))


class LegacyMatcher:
    """Substring test on normalised text; the text is normalised once, each alias at each call."""

    def __init__(self, entities: Sequence[Sequence[str]]) -> None:
        self._entities = tuple(tuple(aliases) for aliases in entities)

    def hits(self, text: str) -> list[bool]:
        """Per entity, whether any alias occurs."""
        normal = legacy_normalise(text)
        return [
            any(legacy_normalise(alias) in normal for alias in aliases)
            for aliases in self._entities
        ]
