"""What a rule says, and what it is given.

One design choice: a rule is a pure function of the recorded rows, so that a test, a running loop
and somebody with an old run folder get the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slime_ext.recipe.alarm_section import AlarmRule

Row = Mapping[str, Any]
"""One step: its rollout metrics and, where the trainer was done with it, the trainer's."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Why a rule holds: the figure it judged, and a sentence with it."""

    value: float
    text: str


Rule = Callable[[Sequence[Row], AlarmRule], Finding | None]
"""Rows in order of steps and the rule's settings; None where all is well or too little is known."""
