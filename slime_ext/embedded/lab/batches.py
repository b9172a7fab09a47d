"""Batches of the warm start: documents with several demonstrations each, packed as trees.

One design choice: a document is computed once for all its questions: the shared part of a tree is
the document alone and each branch holds question and response. The loss covers the response.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from slime_ext.embedded.lab.demonstrations import PERFECT, Flaws, demonstrate
from slime_ext.embedded.lab.task import (
    DEFAULT_SIZE,
    Document,
    GraphSize,
    Question,
    make_document,
    make_question,
)
from slime_ext.embedded.lab.vocabulary import BOS, CHUNK_MODE, EVIDENCE_MODE, token_ids
from slime_ext.embedded.tree import Group, TreeBatch, pack

QUESTIONS = 8
"""Branches of each document."""
RECITED_FACTS = 5
_FACT_WORDS = 4


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the warm start: `steps` batches of one kind."""

    name: str
    steps: int
    documents: int
    """Documents a batch."""
    hops: tuple[int, ...]
    """Lengths of the questions, equally often."""
    size: GraphSize = DEFAULT_SIZE
    flaws: Flaws = PERFECT
    recite: float = 0.0
    """Share of branches that go on reciting the document from a random fact instead of answering;
    they teach copying, which the answers are made of, on every token."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A packed batch; `learned` [N] marks those of its targets that count in the loss."""

    tree: TreeBatch
    learned: Tensor


def make_batch(rng: random.Random, stage: Stage) -> Batch:
    """A random batch of `stage`; the same for the same state of `rng`."""
    groups, learned = [], list[bool]()
    for _ in range(stage.documents):
        document, questions = _questions(rng, stage)
        branches = []
        for question in questions:
            given, wanted = _branch(rng, stage, document, question)
            branches.append(given + wanted)
            learned += [False] * len(given) + [True] * len(wanted)
        groups.append(Group(token_ids(f"{BOS} {document} <q>"), branches))
    return Batch(pack(groups), torch.tensor(learned))


def _questions(rng: random.Random, stage: Stage) -> tuple[Document, list[Question]]:
    while True:
        document = make_document(rng, stage.size)
        found = [make_question(rng, document, rng.choice(stage.hops)) for _ in range(QUESTIONS)]
        questions = [question for question in found if question is not None]
        if len(questions) == QUESTIONS:
            return document, questions


def _branch(
    rng: random.Random, stage: Stage, document: Document, question: Question
) -> tuple[list[int], list[int]]:
    """Ids that are given and ids that are learned, following `<q>`."""
    if rng.random() < stage.recite:
        # Recitation is marked by facts where a question belongs, so it cannot be taken for one.
        words = token_ids(" ".join(map(str, document.facts)) + " </docs>")
        start = _FACT_WORDS * rng.randrange(len(document.facts))
        part = words[start : start + _FACT_WORDS * RECITED_FACTS]
        return part[:2], part[2:]
    mode = rng.choice((CHUNK_MODE, EVIDENCE_MODE))
    given = token_ids(f"{question} </q> {mode}")
    return given, token_ids(demonstrate(rng, document, question, mode, stage.flaws))


def batches(rng: random.Random, stages: tuple[Stage, ...]) -> Iterator[tuple[Stage, Batch]]:
    """Every batch of the stages, in order."""
    for stage in stages:
        for _ in range(stage.steps):
            yield stage, make_batch(rng, stage)
