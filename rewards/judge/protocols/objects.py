"""Verdicts as one JSON object: the form that `response_format` json_schema enforces.

One design choice: the object is found by its code, not by its place. Objects a judge quotes from
the candidate lack the code and do not exist for the reader; a second object of the judge's own, a
missing, further or repeated key, or any other value leaves no verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

RIGHT, WRONG = "right", "wrong"
KEYS = frozenset({"reasoning", "verdict", "code"})

RESPONSE_FORMAT: Mapping[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "verdict",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {
                "reasoning": {"type": "string"},
                "verdict": {"type": "string", "enum": [RIGHT, WRONG]},
                "code": {"type": "string"},
            },
            "required": ["reasoning", "verdict", "code"],
            "additionalProperties": False,
        },
    },
}
"""As OpenAI, SGLang and vLLM take it; the reasoning is written before the verdict."""

_FLAT_OBJECT = re.compile(r'\{(?:[^][{}"\\]|"(?:[^"\\]|\\.)*+")*+\}', re.DOTALL)
"""An object without objects or arrays in it. Two starts in one text read its quotation marks with
opposite parity, so that one of them fails at the next brace: the search is linear."""


def object_form(code: str) -> str:
    """How the prompt asks for the object."""
    return (
        "Reply with one JSON object and nothing else. Its keys, in this order: "
        '"reasoning", a string of one to three sentences; '
        f'"verdict", either "{RIGHT}" or "{WRONG}"; "code", the string "{code}".'
    )


def find_objects(text: str, code: str, bare: bool) -> list[float | None]:
    """One entry per verdict object in `text`: 1.0, 0.0, or None where its form is not exact.

    With `bare`, objects without the code count as well. Linear; never raises.
    """
    found = [match[0] for match in _FLAT_OBJECT.finditer(text)]
    own = [each for each in found if code in each or (bare and '"verdict"' in each)]
    return [_value(each, code, bare) for each in own]


def _value(text: str, code: str, bare: bool) -> float | None:
    try:
        pairs: list[tuple[str, Any]] = json.loads(text, object_pairs_hook=list)
    except ValueError:
        return None
    said = dict(pairs)
    if len(said) != len(pairs) or said.get("code", code if bare else None) != code:
        return None
    if said.keys() | {"code"} != KEYS or not isinstance(said["reasoning"], str):
        return None
    return {RIGHT: 1.0, WRONG: 0.0}.get(said["verdict"])
