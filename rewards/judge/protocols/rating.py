"""Ratings on a scale: 1 to 10 with decimals for data, 1 to 5 in whole numbers for evidence.

One design choice: nothing is clamped or rounded. A number off the scale shows that the reply does
not mean the scale, so that it says nothing about where on it the value would lie.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rewards.judge.protocols.replies import own_words

NoRating = Literal["empty", "unparsable", "several_ratings", "off_scale", "not_whole"]

_NUMBER = r"([+-]?[0-9]{1,9}(?:\.[0-9]{1,9})?)(?: */ *([0-9]{1,9}))?"
_DECORATION = str.maketrans("", "", "*_`\"'")
_LINE_LIMIT = 200


@dataclass(frozen=True, slots=True)
class Rating:
    """`value` on the scale, or None with the `reason`."""

    value: float | None
    reason: NoRating | None = None


def rating_form(low: int, high: int, decimals: bool, code: str) -> str:
    """How a prompt asks for the rating that `read_rating` reads."""
    kind = "a number, decimals allowed," if decimals else "a whole number"
    return (
        f"End with one line `rating {code}: N`, where N is {kind} from {low} (worst) to {high} "
        "(best). Write that line once; without its code it is not counted."
    )


def read_rating(
    text: str, low: float, high: float, decimals: bool, code: str | None = None
) -> Rating:
    """The one rating in a reply, on the scale from `low` to `high`. Linear; never raises.

    It stands on a line of its own as `rating: 7.5`, `score: 7.5` or `[[7.5]]`, or is the whole
    reply; `7/10` is read where the second number is `high`. With `code`, as `rating_form` asks for
    it, only `rating CODE: 7.5` counts, so that rated text the judge quotes does not. More than one
    rating, even an equal one, is no rating; so is one that stands in the reasoning only.
    """
    words = own_words(text)
    if not words:
        return Rating(None, "unparsable" if text.strip() else "empty")
    label = rf"(?:rating|score) *{re.escape(code) if code else ''} *[:：] *"
    forms = [rf"{label}{_NUMBER}\.?"]
    if code is None:
        forms.append(rf"\[\[ *{_NUMBER} *\]\]\.?")
    lines = [
        line.translate(_DECORATION).strip(" \t#>")
        for line in words.splitlines()
        if len(line) <= _LINE_LIMIT
    ]
    found = [match for form in forms for line in lines if (match := _match(form, line)) is not None]
    if not found and code is None and len(words) <= _LINE_LIMIT:
        found = [match for match in [_match(_NUMBER, words)] if match is not None]
    if len(found) != 1:
        return Rating(None, "several_ratings" if found else "unparsable")
    return _on_scale(found[0][1], found[0][2], low, high, decimals)


def _match(form: str, line: str) -> re.Match[str] | None:
    return re.fullmatch(form, line, re.IGNORECASE)


def _on_scale(number: str, out_of: str | None, low: float, high: float, decimals: bool) -> Rating:
    value = float(number)
    if out_of is not None and float(out_of) != high:
        return Rating(None, "off_scale")
    if not low <= value <= high:
        return Rating(None, "off_scale")
    if not decimals and "." in number:
        return Rating(None, "not_whole")
    return Rating(value)
