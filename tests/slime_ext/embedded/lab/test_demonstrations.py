import random

import pytest

from slime_ext.embedded.lab.demonstrations import Flaws, demonstrate
from slime_ext.embedded.lab.responses import perfect_response, write_response
from slime_ext.embedded.lab.task import Fact, GraphSize, Question, make_problem
from slime_ext.embedded.lab.vocabulary import CHUNK_MODE, EVIDENCE_MODE, token_ids

WALK = Question((Fact("ent3", "rel1", "ent9", 17), Fact("ent9", "rel7", "ent2", 4)))
MODES = (CHUNK_MODE, EVIDENCE_MODE)


def _many(flaws, mode=CHUNK_MODE, hops=3, number=400):
    rng = random.Random(0)
    for _ in range(number):
        document, question = make_problem(rng, GraphSize(), hops)
        yield document, question, demonstrate(rng, document, question, mode, flaws).split()


def _between(words, tag):
    return words[words.index(f"<{tag}>") + 1 : words.index(f"</{tag}>")]


def test_chunk_response_is_reasoning_then_chunks_then_answer():
    assert perfect_response(WALK, CHUNK_MODE) == (
        "<think> ent3 rel1 ent9 <CHUNK_17> ent9 rel7 ent2 <CHUNK_4> </think> "
        "<useful_chunks> <CHUNK_17> <CHUNK_4> </useful_chunks> <answer> ent2 </answer> <eos>"
    )


def test_evidence_response_has_the_four_parts_in_order():
    assert perfect_response(WALK, EVIDENCE_MODE) == (
        "<analysis> rel1 rel7 </analysis> "
        "<evidence> ent3 rel1 ent9 <CHUNK_17> ent9 rel7 ent2 <CHUNK_4> </evidence> "
        "<reasoning> ent9 ent2 </reasoning> <answer> ent2 </answer> <eos>"
    )


def test_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="<m_chunk>"):
        write_response("<m_other>", (), (), (), "ent1")


@pytest.mark.parametrize("mode", MODES)
def test_demonstrations_without_flaws_are_perfect(mode):
    for _, question, words in _many(Flaws(), mode, number=50):
        assert " ".join(words) == perfect_response(question, mode)


@pytest.mark.parametrize("mode", MODES)
def test_every_demonstration_is_made_of_the_labs_words(mode):
    flaws = Flaws(right_edge=0.5, short_chain=0.3, dropped_citation=0.15, broken_format=0.5)
    for _, _, words in _many(flaws, mode, number=50):
        assert token_ids(" ".join(words))


def test_wrong_edges_are_near_distractors_at_the_stated_rate():
    right = steps = 0
    for document, question, words in _many(Flaws(right_edge=0.6)):
        chain = _between(words, "think")
        facts = [chain[i : i + 4] for i in range(0, len(chain), 4)]
        assert [fact[1] for fact in facts] == list(question.relations)
        for subject, relation, target, chunk in facts:
            edge = next(
                e for e in document.edges[subject].values() if f"<CHUNK_{e.chunk}>" == chunk
            )
            assert edge.object == target
            # A wrong turn can reach a subject without the asked relation: no right edge there.
            if relation in document.edges[subject]:
                steps += 1
                right += edge.relation == relation
        assert words[words.index("<answer>") + 1] == facts[-1][2]
    assert abs(right / steps - 0.6) < 0.06


def test_short_chains_guess_by_the_last_relation_without_evidence():
    short = 0
    for document, question, words in _many(Flaws(short_chain=0.5)):
        if not _between(words, "think"):
            short += 1
            assert _between(words, "useful_chunks") == []
            guesses = {f.object for f in document.facts if f.relation == question.relations[-1]}
            assert words[words.index("<answer>") + 1] in guesses
    assert abs(short / 400 - 0.5) < 0.08


def test_dropped_citations_leave_the_reasoning_whole():
    cited = 0
    for _, question, words in _many(Flaws(dropped_citation=0.25)):
        assert len(_between(words, "think")) == 4 * len(question.path)
        cited += len(_between(words, "useful_chunks"))
    assert abs(cited / 1200 - 0.75) < 0.05


@pytest.mark.parametrize("mode", MODES)
def test_broken_format_lacks_exactly_one_closing_tag(mode):
    for _, question, words in _many(Flaws(broken_format=1.0), mode, number=50):
        whole = perfect_response(question, mode).split()
        missing = [word for word in whole if word not in words]
        assert len(words) == len(whole) - 1
        assert len(missing) == 1
        assert missing[0].startswith("</")
        assert missing[0] != "</answer>"
