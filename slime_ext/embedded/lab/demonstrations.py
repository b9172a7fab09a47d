"""Imperfect demonstrations for the warm start.

One design choice: the policy is taught the habit of answering in the format and to be wrong at a
known rate, because GRPO learns from the spread inside a group: a start that is always right, or
always wrong in the same way, has none.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from slime_ext.embedded.lab.responses import write_response
from slime_ext.embedded.lab.task import Document, Fact, Question

_BREAKABLE = ("</think>", "</useful_chunks>", "</analysis>", "</evidence>", "</reasoning>")


@dataclass(frozen=True, slots=True)
class Flaws:
    """Rates of the ways in which a demonstration falls short; the default has none."""

    right_edge: float = 1.0
    """Probability, at each hop, of following the asked relation instead of a near distractor."""
    short_chain: float = 0.0
    """Probability of answering at once, without facts or citations, by an edge whose relation is
    the last one asked."""
    dropped_citation: float = 0.0
    """Probability, for each cited chunk, of leaving it out of the list."""
    broken_format: float = 0.0
    """Probability of leaving out one closing tag."""


PERFECT = Flaws()


def _walk(rng: random.Random, document: Document, question: Question, flaws: Flaws) -> list[Fact]:
    """The facts a flawed reader follows: each states the relation that was asked, and the subject,
    object and chunk of the edge that was taken."""
    current, facts = question.path[0].subject, list[Fact]()
    for relation in question.relations:
        edges = document.edges[current]
        taken = relation
        if relation not in edges or rng.random() >= flaws.right_edge:
            taken = rng.choice([other for other in edges if other != relation])
        edge = edges[taken]
        facts.append(Fact(current, relation, edge.object, edge.chunk))
        current = edge.object
    return facts


def demonstrate(
    rng: random.Random, document: Document, question: Question, mode: str, flaws: Flaws
) -> str:
    """One demonstration in `mode` (words separated by spaces, end token included).

    The document needs out-degree 2 or more, or there is no near distractor to follow.
    """
    relations = question.relations
    if rng.random() < flaws.short_chain:
        guesses = [fact for fact in document.facts if fact.relation == relations[-1]]
        return write_response(mode, (), (), relations, rng.choice(guesses).object)
    facts = _walk(rng, document, question, flaws)
    cited = [fact.chunk for fact in facts if rng.random() >= flaws.dropped_citation]
    text = write_response(mode, facts, cited, relations, facts[-1].object)
    if rng.random() < flaws.broken_format:
        words = text.split()
        words.remove(rng.choice([tag for tag in _BREAKABLE if tag in words]))
        text = " ".join(words)
    return text
