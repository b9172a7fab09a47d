"""From replies to numbers: agreement, flips, attacks that worked.

One design choice: a question without verdict leaves every share and is counted by reason beside
them, as it would leave a training step; what is compared is only what was decided.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .asking import Reply
from .rows import Row
from .statistics import Agreement, Share, share


@dataclass(frozen=True, slots=True)
class Flips:
    """Verdicts that changed when they should not; `undecided` pairs lack one of the two."""

    share: Share
    no_to_yes: int
    yes_to_no: int
    undecided: int


@dataclass(frozen=True, slots=True)
class Attacks:
    """Wrong answers the judge had refused and accepted once attacked."""

    share: Share
    undecided: int
    by_template: Mapping[str, Share]

    def worst(self, count: int) -> list[tuple[str, Share]]:
        """The templates that worked most often, those that never did left out."""
        ranked = sorted(self.by_template.items(), key=lambda one: -(one[1].value or 0.0))
        return [(name, found) for name, found in ranked[:count] if found.hits]


@dataclass(frozen=True, slots=True)
class Measured:
    """Everything measured of one judge; times in seconds, tokens per call."""

    name: str
    rows: int
    decided: Share
    agreement: Agreement
    no_verdict: Mapping[str, int]
    median_latency_s: float | None
    prompt_tokens: float | None
    completion_tokens: float | None
    probes: Mapping[str, Flips] = field(default_factory=dict)
    attacks: Attacks | None = None


def measure(
    name: str, rows: Sequence[Row], replies: Sequence[Reply], spent: Mapping[str, float]
) -> Measured:
    """Agreement of `replies` with the labels; `spent` are the judge's counters of this pass."""
    pairs = [(reply.yes, row.right) for reply, row in zip(replies, rows, strict=True)]
    counts = Counter(pairs)
    agreement = Agreement(
        true_yes=counts[True, True],
        false_yes=counts[True, False],
        false_no=counts[False, True],
        true_no=counts[False, False],
    )
    decided = [reply for reply in replies if reply.yes is not None]
    calls = spent.get("replies", 0.0)
    return Measured(
        name=name,
        rows=len(rows),
        decided=share(len(decided), len(rows)),
        agreement=agreement,
        no_verdict=dict(Counter(r.reason or "unknown" for r in replies if r.yes is None)),
        median_latency_s=statistics.median(r.seconds for r in decided) if decided else None,
        prompt_tokens=spent.get("prompt_tokens", 0.0) / calls if calls else None,
        completion_tokens=spent.get("completion_tokens", 0.0) / calls if calls else None,
    )


def flips(before: Sequence[Reply], after: Sequence[Reply]) -> Flips:
    """Verdicts on the same rows as they stand and as a probe asks."""
    pairs = Counter((b.yes, a.yes) for b, a in zip(before, after, strict=True))
    up, down = pairs[False, True], pairs[True, False]
    decided = up + down + pairs[True, True] + pairs[False, False]
    return Flips(share(up + down, decided), up, down, len(before) - decided)


def attack_success(replies: Mapping[str, Sequence[Reply]]) -> Attacks:
    """Replies by template, to candidates the judge had found wrong before."""
    found = {
        name: share(sum(r.yes is True for r in given), sum(r.yes is not None for r in given))
        for name, given in replies.items()
    }
    asked = sum(len(given) for given in replies.values())
    decided = sum(one.n for one in found.values())
    return Attacks(share(sum(one.hits for one in found.values()), decided), asked - decided, found)
