"""Random graphs written as documents, and questions that walk over them.

One design choice: every entity has several out-edges, so the other edges of the same subject are
near distractors, and a fact ends with its chunk id (a model this small does not learn to cite an
id that comes first).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from slime_ext.embedded.lab.vocabulary import (
    ENTITIES,
    NUM_CHUNKS,
    NUM_ENTITIES,
    NUM_RELATIONS,
    RELATIONS,
    chunk_word,
)

_TRIES = 200


@dataclass(frozen=True, slots=True)
class GraphSize:
    """Size of one document's graph; every entity has `out_degree` facts about it."""

    entities: int = 12
    out_degree: int = 3
    relations: int = 12

    def __post_init__(self) -> None:
        if not 2 <= self.entities <= NUM_ENTITIES:
            raise ValueError(f"entities = {self.entities}; write 2 to {NUM_ENTITIES}")
        if not 1 <= self.relations <= NUM_RELATIONS:
            raise ValueError(f"relations = {self.relations}; write 1 to {NUM_RELATIONS}")
        if not 1 <= self.out_degree <= self.relations:
            raise ValueError(
                f"out_degree = {self.out_degree}; write 1 to relations = {self.relations} "
                f"(the edges of an entity have different relations)"
            )
        if self.facts > NUM_CHUNKS:
            raise ValueError(
                f"entities * out_degree = {self.facts} facts need as many chunk ids and there "
                f"are {NUM_CHUNKS}; write fewer of either"
            )

    @property
    def facts(self) -> int:
        return self.entities * self.out_degree


DEFAULT_SIZE = GraphSize()
"""36 facts: a prompt of about 155 tokens."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One edge; `chunk` is the number of its chunk id."""

    subject: str
    relation: str
    object: str
    chunk: int

    @property
    def triple(self) -> str:
        return f"{self.subject} {self.relation} {self.object}"

    def __str__(self) -> str:
        return f"{self.triple} {chunk_word(self.chunk)}"


@dataclass(frozen=True, slots=True)
class Document:
    """Facts in the order in which the prompt shows them."""

    facts: tuple[Fact, ...]
    edges: dict[str, dict[str, Fact]] = field(init=False, repr=False, compare=False)
    """subject -> relation -> fact."""

    def __post_init__(self) -> None:
        edges: dict[str, dict[str, Fact]] = {}
        for fact in self.facts:
            edges.setdefault(fact.subject, {})[fact.relation] = fact
        object.__setattr__(self, "edges", edges)

    def __str__(self) -> str:
        return " ".join(("<docs>", *map(str, self.facts), "</docs>"))


@dataclass(frozen=True, slots=True)
class Question:
    """A walk of k facts; the answer is the last object."""

    path: tuple[Fact, ...]

    @property
    def relations(self) -> tuple[str, ...]:
        return tuple(fact.relation for fact in self.path)

    @property
    def answer(self) -> str:
        return self.path[-1].object

    def __str__(self) -> str:
        return " ".join((self.path[0].subject, *self.relations))


def make_document(rng: random.Random, size: GraphSize) -> Document:
    """A random graph of `size` with shuffled facts and random chunk numbers; no self-loops."""
    entities = rng.sample(ENTITIES, size.entities)
    relations = rng.sample(RELATIONS, size.relations)
    edges = []
    for subject in entities:
        for relation in rng.sample(relations, size.out_degree):
            target = rng.choice(entities)
            while target == subject:
                target = rng.choice(entities)
            edges.append((subject, relation, target))
    rng.shuffle(edges)
    chunks = rng.sample(range(NUM_CHUNKS), len(edges))
    return Document(tuple(Fact(*edge, chunk) for edge, chunk in zip(edges, chunks, strict=True)))


def make_question(rng: random.Random, document: Document, hops: int) -> Question | None:
    """A random walk of `hops` facts over distinct entities and distinct relations.

    None if 200 random walks all end early, as they do in most graphs too small for the length.
    """
    subjects = list(document.edges)
    for _ in range(_TRIES):
        current = rng.choice(subjects)
        entities, relations, path = {current}, set[str](), list[Fact]()
        while len(path) < hops:
            options = [
                fact
                for fact in document.edges[current].values()
                if fact.relation not in relations and fact.object not in entities
            ]
            if not options:
                break
            fact = rng.choice(options)
            path.append(fact)
            relations.add(fact.relation)
            entities.add(fact.object)
            current = fact.object
        if len(path) == hops:
            return Question(tuple(path))
    return None


def make_problem(rng: random.Random, size: GraphSize, hops: int) -> tuple[Document, Question]:
    """A document with one question of `hops` facts.

    Raises ValueError where 200 documents in a row hold no such walk.
    """
    if hops < 1:
        raise ValueError(f"hops = {hops}; write 1 or more")
    for _ in range(_TRIES):
        document = make_document(rng, size)
        question = make_question(rng, document, hops)
        if question is not None:
            return document, question
    raise ValueError(
        f"no walk of {hops} hops found in {_TRIES} graphs of {size.entities} entities, out-degree "
        f"{size.out_degree} and {size.relations} relations; write fewer hops or a larger graph"
    )
