"""The verdict of an outcome scorer: a value, or no verdict with a reason.

One design choice: "no verdict" can only be built with a reason and has no numeric value, so a judge
that failed cannot be read as a judge that said 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """`value` in [0, 1], or None with a `reason` such as "timeout" or "unparsable"."""

    value: float | None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.value is None:
            if not self.reason:
                raise ValueError("a verdict without a value needs a reason; use no_verdict(reason)")
        elif not (math.isfinite(self.value) and 0.0 <= self.value <= 1.0):
            raise ValueError(
                f"verdict value {self.value!r} is outside [0, 1]; scale it, or use no_verdict"
            )


def verdict(value: float) -> Verdict:
    """A decided verdict; ValueError outside [0, 1]."""
    return Verdict(value=float(value))


def no_verdict(reason: str) -> Verdict:
    """The scorer could not decide; the sample becomes undetermined under this reason."""
    return Verdict(value=None, reason=reason)
