"""The same question asked another way: a steady judge gives the same verdict.

One design choice: each probe changes one thing that cannot change the truth (which text stands in
which place, the order of the references, words around the answer), so no new labels are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from rewards.types import Task

from .rows import Row

Question = tuple[Task, str]
"""What a judge is asked: the task and the candidate answer."""

_BEFORE = (
    "I have gone through the whole text once more and weighed each passage that has to do with "
    "what was asked. Some of them set the scene, some add details that are of no use here, and a "
    "few speak to the point. Taking these together, and leaving aside what the text only hints "
    "at, this is the answer at which I arrive: "
)
_AFTER = (
    " The text returns to the subject in several places, at times in other words, and I have "
    "compared them with care before settling on this. Further reading would surely bring more of "
    "the background to light, but the answer itself would stay as it is given here."
)


def as_it_stands(row: Row) -> Question:
    """The row's own question."""
    return row.task(), row.candidate


def swapped(row: Row) -> Question | None:
    """Gold answer and candidate in each other's place; None for an empty candidate."""
    if not row.candidate.strip():
        return None
    return replace(row.task(), answer=row.candidate, aliases=()), row.answer


def reordered(row: Row) -> Question | None:
    """Gold answer and aliases in reverse order; None for a row without aliases."""
    if not row.aliases:
        return None
    first, *others = reversed(row.task().answers)
    return replace(row.task(), answer=first, aliases=tuple(others)), row.candidate


def padded(row: Row) -> Question | None:
    """The candidate between two paragraphs that say nothing; None for an empty candidate."""
    if not row.candidate.strip():
        return None
    return row.task(), f"{_BEFORE}{row.candidate}.{_AFTER}"


PROBES: Mapping[str, Callable[[Row], Question | None]] = {
    "position": swapped,
    "alias order": reordered,
    "verbosity": padded,
}
"""Every probe by the name it has in the table."""
