"""One recipe, several runs: seeds and values of keys, each combination a run of its own.

One design choice: a comma separates values only where it stands outside brackets, braces and
quotes, so a list or a table stays one value, as it is for every other command.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from slime_ext.errors import ExplainedError
from slime_ext.recipe.load import parse_override

LONGEST_SUFFIX = 60
_OPEN = {"[": "]", "{": "}"}
_QUOTES = "\"'"


class SweepError(ExplainedError):
    """The values cannot be told apart, or one is empty."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One run: its changes to the recipe and what is added to the name."""

    overrides: tuple[str, ...]
    suffix: str


def variants(overrides: Sequence[str], seeds: str | None = None) -> list[Variant]:
    """Every combination of the values in `overrides` and of the comma-separated `seeds`.

    Raises SweepError for an empty value or one that appears twice, RecipeError for an override
    that is none.
    """
    axes = [_axis(one) for one in overrides]
    if seeds is not None:
        axes.append(_axis(f"seed={seeds}"))
    found = []
    for chosen in itertools.product(*axes):
        parts = [
            _short(override) for override, axis in zip(chosen, axes, strict=True) if len(axis) > 1
        ]
        found.append(Variant(chosen, "".join(f"-{part}" for part in parts)))
    return _told_apart(found)


def split_values(text: str) -> list[str]:
    """`text` cut at its outer commas: "1,2" is two values, "[1,2]" and '"a,b"' are one each."""
    values, start, closing, quote = [], 0, [], ""
    for place, mark in enumerate(text):
        if quote:
            quote = "" if mark == quote else quote
        elif mark in _QUOTES:
            quote = mark
        elif mark in _OPEN:
            closing.append(_OPEN[mark])
        elif closing and mark == closing[-1]:
            closing.pop()
        elif mark == "," and not closing:
            values.append(text[start:place])
            start = place + 1
    return [value.strip() for value in [*values, text[start:]]]


def _axis(override: str) -> list[str]:
    key, equals, raw = override.partition("=")
    if not equals:
        parse_override(override)
    values = split_values(raw)
    if len(values) > 1 and not all(values):
        raise SweepError(f"{override}: a value between the commas is empty; write KEY=A,B")
    if len(set(values)) < len(values):
        raise SweepError(f"{override}: a value stands there twice; each run needs its own")
    made = [f"{key}={value}" for value in values]
    for one in made:
        parse_override(one)
    return made


def _short(override: str) -> str:
    """`optimiser.lr=1e-6` as the end of a name: `lr1e-6`."""
    key, _, value = override.partition("=")
    name = key.strip().rpartition(".")[2]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{name}{value}").strip("-.")[:LONGEST_SUFFIX]


def _told_apart(found: list[Variant]) -> list[Variant]:
    suffixes = [one.suffix for one in found]
    if len(set(suffixes)) == len(suffixes):
        return found
    return [Variant(one.overrides, f"{one.suffix}-{number}") for number, one in enumerate(found, 1)]
