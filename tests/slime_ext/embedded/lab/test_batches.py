import random

import torch

from slime_ext.embedded.lab.batches import QUESTIONS, Stage, batches, make_batch
from slime_ext.embedded.lab.demonstrations import Flaws
from slime_ext.embedded.lab.task import GraphSize
from slime_ext.embedded.lab.vocabulary import TOKEN_IDS, VOCABULARY

SMALL = GraphSize(6, 3, 6)


def _learned_words(batch):
    return [VOCABULARY[i] for i in batch.tree.targets[batch.learned]]


def test_answering_branches_learn_the_response_and_not_the_question():
    stage = Stage("small", steps=1, documents=2, hops=(2,), size=SMALL)
    batch = make_batch(random.Random(0), stage)
    words = _learned_words(batch)
    assert words.count("<eos>") == words.count("<answer>") == 2 * QUESTIONS
    assert not {"<q>", "</q>", "<docs>", "</docs>", "<m_chunk>", "<m_eapo>"} & set(words)
    given = [VOCABULARY[i] for i in batch.tree.targets[~batch.learned]]
    assert given.count("</q>") == 2 * QUESTIONS
    # Given words are a start, two relations, </q> and a mode.
    assert len(given) == 2 * QUESTIONS * 5


def test_documents_are_shared_by_their_branches():
    stage = Stage("small", steps=1, documents=3, hops=(2,), size=SMALL)
    tree = make_batch(random.Random(0), stage).tree
    assert tree.ids.shape[0] == 3
    assert tree.layout.branches == QUESTIONS
    assert (tree.ids == TOKEN_IDS["<docs>"]).sum() == 3
    assert (tree.ids == TOKEN_IDS["<q>"]).sum() == 3 * QUESTIONS


def test_recitation_continues_the_document():
    stage = Stage("small", steps=1, documents=4, hops=(2,), size=SMALL, recite=1.0)
    batch = make_batch(random.Random(0), stage)
    words = _learned_words(batch)
    assert "<answer>" not in words
    document = [VOCABULARY[i] for i in batch.tree.ids[0, : batch.tree.layout.prompt].tolist()]
    first = words[:6]
    assert any(document[i : i + len(first)] == first for i in range(len(document)))


def test_stages_follow_each_other_and_repeat_for_the_same_stream():
    stages = (
        Stage("one", steps=2, documents=1, hops=(2,), size=SMALL),
        Stage("two", steps=1, documents=2, hops=(1, 3), size=SMALL, flaws=Flaws(right_edge=0.5)),
    )
    made = list(batches(random.Random(0), stages))
    again = list(batches(random.Random(0), stages))
    assert [stage.name for stage, _ in made] == ["one", "one", "two"]
    assert [batch.tree.ids.shape[0] for _, batch in made] == [1, 1, 2]
    for (_, first), (_, second) in zip(made, again, strict=True):
        assert torch.equal(first.tree.ids, second.tree.ids)
        assert torch.equal(first.learned, second.learned)
