"""Which gold entities does a text name? Unicode-aware, whole words, all aliases of an entity.

One design choice: names and text are folded to words joined by one space, so that a whole-word
test is a substring test on bytes. With many names a set of the text's words rules most out first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

from rewards.entities_legacy import LegacyMatcher
from rewards.folding import UNSPACED, fold_words

_UNSPACED_FIRST = re.compile(UNSPACED)
_UNSPACED_LAST = re.compile(rf"{UNSPACED}\Z")
_MANY = 24
"""Names from which building the set of words (about 0.7 ms at 130,000 characters) pays off."""


class Matcher(Protocol):
    """Tells which entities occur in a text."""

    def hits(self, text: str) -> list[bool]:
        """Per entity, in the order given, whether the text names it."""


@dataclass(frozen=True, slots=True)
class _Name:
    """One folded alias. `needle` has a space on each side that ends in a script with word
    boundaries; `words` are those that must stand in the text as whole words."""

    needle: bytes
    words: frozenset[bytes]


class EntityMatcher:
    """Matches entities by whole words after NFKC and casefolding (methods, section 1).

    `unusable` lists aliases that fold to nothing and are passed over because another alias of the
    same entity is usable. Raises ValueError for an entity without a usable alias.
    """

    def __init__(self, entities: Sequence[Sequence[str]]) -> None:
        self._entities: list[list[_Name]] = []
        unusable: list[str] = []
        for number, aliases in enumerate(entities):
            names = {alias: _fold_name(alias) for alias in aliases}
            unusable += [alias for alias, name in names.items() if name is None]
            usable = {name.needle: name for name in names.values() if name is not None}
            if not usable:
                raise ValueError(
                    f"gold entity {number} {list(aliases)!r} has no letter or digit and can match "
                    "nothing; correct gold_entities or remove the entity"
                )
            self._entities.append(list(usable.values()))
        self.unusable = tuple(unusable)
        self._many = sum(map(len, self._entities)) >= _MANY

    def hits(self, text: str) -> list[bool]:
        words = fold_words(text)
        folded = b" %b " % b" ".join(words)
        if not self._many:
            return [any(name.needle in folded for name in names) for names in self._entities]
        known = set(words)
        return [
            any(name.words <= known and name.needle in folded for name in names)
            for names in self._entities
        ]


def _fold_name(alias: str) -> _Name | None:
    words = fold_words(alias)
    if not words:
        return None
    open_left = bool(_UNSPACED_FIRST.match(words[0].decode()))
    open_right = bool(_UNSPACED_LAST.search(words[-1].decode()))
    whole = words[1 if open_left else 0 : -1 if open_right else None]
    needle = (b"" if open_left else b" ") + b" ".join(words) + (b"" if open_right else b" ")
    return _Name(needle, frozenset(whole))


def recall(hits: Sequence[bool]) -> float:
    """Share of entities named; 0.0 for no entities."""
    return sum(hits) / len(hits) if hits else 0.0


@lru_cache(maxsize=4096)
def make_matcher(
    entities: tuple[tuple[str, ...], ...], kind: Literal["correct", "legacy"] = "correct"
) -> Matcher:
    """The matcher of one task, built once for all responses of its group."""
    return EntityMatcher(entities) if kind == "correct" else LegacyMatcher(entities)
