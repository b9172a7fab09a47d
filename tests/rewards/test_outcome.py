"""Outcome scorers and verdicts."""

import math

import pytest

from rewards.normalise import normalise_answer
from rewards.outcome import OutcomeConfig, choice_letter, exact_match, make_outcome, token_f1
from rewards.types import Task
from rewards.verdicts import Verdict, no_verdict, verdict


def task(answer, *aliases):
    return Task(id="t", question="q", answer=answer, aliases=aliases)


async def value(kind, gold, answer, **config):
    return (await make_outcome(OutcomeConfig(kind=kind, **config)).judge(gold, answer)).value


def test_normalisation_is_the_official_one():
    assert normalise_answer("  The Quick,\tbrown-fox! ") == "quick brownfox"
    assert normalise_answer("Theory of an Era") == "theory of era"


async def test_exact_match_over_aliases():
    gold = task("New York City", "NYC")
    assert await value("exact", gold, "the new york city.") == 1.0
    assert await value("exact", gold, "nyc") == 1.0
    assert await value("exact", gold, "New York") == 0.0
    assert await value("exact", gold, "") == 0.0


def test_a_gold_answer_of_articles_is_compared_as_written():
    assert exact_match("The The", "The The") == 1.0
    assert exact_match("", "The The") == 0.0
    assert exact_match("a", "The The") == 0.0
    assert exact_match("", "") == 0.0
    assert token_f1("the the", "The The") == 1.0


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("Barack Obama", "President Barack Obama", 0.8),
        ("a b b", "b b c", 0.8),
        ("x", "y", 0.0),
        ("", "y", 0.0),
        ("yes", "yes it is", 0.0),
        ("yes it is", "yes", 0.0),
        ("Yes.", "yes", 1.0),
        ("no", "no", 1.0),
        ("noanswer", "no answer", 0.0),
        ("no answer", "no answer at all", 2 / 3),
    ],
)
def test_token_f1(answer, gold, expected):
    assert token_f1(answer, gold) == pytest.approx(expected)


async def test_f1_takes_the_best_reference_and_may_be_binary():
    gold = task("x y z", "Barack Obama")
    assert await value("f1", gold, "Obama") == pytest.approx(2 / 3)
    assert await value("f1", gold, "Obama", f1_threshold=0.6) == 1.0
    assert await value("f1", gold, "Obama", f1_threshold=0.7) == 0.0


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("B", "B"),
        (" (b) ", "B"),
        ("B. Paris", "B"),
        ("**C**", "C"),
        ("(A) Paris", "A"),
        ("The correct answer is (D)", "D"),
        ("The answer is A, no: the answer is **B**.", "B"),
        ("Option C fits best", "C"),
        ("Of the two, (B) holds", "B"),
        ("Either (A) or (B)", None),
        ("A man walks", None),
        ("the answer is Berlin", None),
        ("the answer is a dog", None),
        ("E", None),
        ("", None),
    ],
)
def test_choice_letter(text, letter):
    assert choice_letter(text, "ABCD") == letter


async def test_choice_compares_letters():
    assert await value("choice", task("B"), "The answer is (B).") == 1.0
    assert await value("choice", task("(B) Paris"), "b") == 1.0
    assert await value("choice", task("B"), "Either (A) or (B)") == 0.0
    assert await value("choice", task("E"), "E", letters="ABCDE") == 1.0


async def test_choice_refuses_a_gold_answer_without_letter():
    with pytest.raises(ValueError, match=r"task t: .*Paris.*outcome\.letters"):
        await value("choice", task("Paris"), "B")


def test_verdicts_cannot_mix_value_and_failure():
    assert verdict(1).value == 1.0
    assert no_verdict("timeout").reason == "timeout"
    for bad in (-0.1, 1.5, 90, math.nan, math.inf):
        with pytest.raises(ValueError, match="outside"):
            verdict(bad)
    with pytest.raises(ValueError, match="reason"):
        Verdict(None)


def test_unknown_keys_are_refused():
    with pytest.raises(ValueError, match="treshold"):
        OutcomeConfig(treshold=0.5)
