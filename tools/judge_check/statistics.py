"""Shares with intervals, and agreement beyond chance.

One design choice: a share of nothing is None and not 0, so that a judge that decided no wrong
answer cannot pass for one that never says a false yes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

Z_95 = 1.959963984540054
"""Quantile of the normal distribution for a two-sided 95% interval."""


@dataclass(frozen=True, slots=True)
class Share:
    """`hits` of `n`, with its value and 95% Wilson interval in [0, 1]; all None where n is 0."""

    hits: int
    n: int
    value: float | None
    low: float | None
    high: float | None


def share(hits: int, n: int) -> Share:
    """`hits` of `n` with the Wilson score interval (E. B. Wilson 1927); ValueError unless
    0 <= hits <= n."""
    if not 0 <= hits <= n:
        raise ValueError(f"{hits} hits of {n}: hits must lie between 0 and n")
    if n == 0:
        return Share(0, 0, None, None, None)
    value, square = hits / n, Z_95 * Z_95
    scale = 1 + square / n
    centre = (value + square / (2 * n)) / scale
    half = Z_95 / scale * math.sqrt(value * (1 - value) / n + square / (4 * n * n))
    # At 0 and n hits the formula gives the border itself; rounding must not step across it.
    low = 0.0 if hits == 0 else max(0.0, centre - half)
    high = 1.0 if hits == n else min(1.0, centre + half)
    return Share(hits, n, value, low, high)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts of verdict against label over the decided rows."""

    true_yes: int
    false_yes: int
    false_no: int
    true_no: int

    @property
    def n(self) -> int:
        """Decided rows."""
        return self.true_yes + self.false_yes + self.false_no + self.true_no

    def accuracy(self) -> Share:
        """Verdicts that equal the label."""
        return share(self.true_yes + self.true_no, self.n)

    def false_yes_rate(self) -> Share:
        """Yes to answers labelled wrong: what a policy would learn to exploit."""
        return share(self.false_yes, self.false_yes + self.true_no)

    def false_no_rate(self) -> Share:
        """No to answers labelled right."""
        return share(self.false_no, self.false_no + self.true_yes)

    def kappa(self) -> float | None:
        """Cohen's kappa (1960); None where chance alone agrees always, or nothing is decided."""
        n = self.n
        if n == 0:
            return None
        yes = (self.true_yes + self.false_yes) * (self.true_yes + self.false_no)
        no = (self.true_no + self.false_no) * (self.true_no + self.false_yes)
        chance = (yes + no) / (n * n)
        if yes + no == n * n:
            return None
        return ((self.true_yes + self.true_no) / n - chance) / (1 - chance)
