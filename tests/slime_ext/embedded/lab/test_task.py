import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slime_ext.embedded.lab.task import (
    GraphSize,
    make_document,
    make_problem,
    make_question,
)

SEEDS = st.integers(0, 2**32)


@given(SEEDS)
def test_default_document_has_36_facts_with_own_chunks_and_near_distractors(seed):
    document = make_document(random.Random(seed), GraphSize())
    assert len(document.facts) == 36
    assert len({fact.chunk for fact in document.facts}) == 36
    assert len(document.edges) == 12
    assert all(len(edges) == 3 for edges in document.edges.values())
    assert len({fact.relation for fact in document.facts}) <= 12
    assert all(fact.subject != fact.object for fact in document.facts)
    assert {fact.object for fact in document.facts} <= set(document.edges)


@given(SEEDS, st.integers(1, 4))
@settings(max_examples=50)
def test_question_follows_existing_facts_over_distinct_entities_and_relations(seed, hops):
    document, question = make_problem(random.Random(seed), GraphSize(), hops)
    assert len(question.path) == hops
    for fact, following in zip(question.path, question.path[1:], strict=False):
        assert fact.object == following.subject
    assert all(document.edges[f.subject][f.relation] is f for f in question.path)
    assert len(set(question.relations)) == hops
    visited = [question.path[0].subject, *(fact.object for fact in question.path)]
    assert len(set(visited)) == hops + 1
    assert question.answer == visited[-1]
    assert str(question).split() == [visited[0], *question.relations]


def test_same_stream_gives_the_same_problem_and_another_stream_another():
    first, same, other = (make_problem(random.Random(s), GraphSize(), 3) for s in (5, 5, 6))
    assert first == same
    assert first != other


def test_walks_longer_than_the_graph_are_refused():
    small = GraphSize(entities=3, out_degree=1, relations=2)
    assert make_question(random.Random(0), make_document(random.Random(0), small), 3) is None
    with pytest.raises(ValueError, match=r"no walk of 3 hops.*fewer hops or a larger graph"):
        make_problem(random.Random(0), small, 3)
    with pytest.raises(ValueError, match="write 1 or more"):
        make_problem(random.Random(0), small, 0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"entities": 1}, "write 2 to 64"),
        ({"relations": 17}, "write 1 to 16"),
        ({"out_degree": 13}, "relations = 12"),
        ({"entities": 17}, "51 facts.*48"),
    ],
)
def test_impossible_sizes_are_refused(values, message):
    with pytest.raises(ValueError, match=message):
        GraphSize(**values)
