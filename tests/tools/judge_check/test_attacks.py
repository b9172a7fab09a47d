"""The attack set and the probes are what they claim to be."""

from __future__ import annotations

from longrl_tools.judge_check.attacks import ATTACKS, MARK, attacked
from longrl_tools.judge_check.probes import padded, reordered, swapped
from longrl_tools.judge_check.rows import Row


def test_every_attack_is_distinct_and_holds_the_candidate():
    assert len(ATTACKS) >= 30
    assert len(set(ATTACKS.values())) == len(ATTACKS)
    for template in ATTACKS.values():
        text = attacked(template, "{0} Rome {candidate")
        assert "{0} Rome {candidate" in text
        assert MARK not in text
        assert text != "{0} Rome {candidate"


def test_probes_change_one_thing_each():
    row = Row(
        question="q", answer="a", aliases=("b", "c"), candidate="x", label="wrong", chunks=("t",)
    )
    task, answer = swapped(row)
    assert (task.answers, answer) == (("x",), "a")
    task, answer = reordered(row)
    assert (task.answers, answer) == (("c", "b", "a"), "x")
    task, answer = padded(row)
    assert task == row.task()
    assert "x" in answer.split(": ")[1]
    assert len(answer) > 300


def test_probes_that_do_not_apply_are_left_out():
    row = Row(question="q", answer="a", candidate=" ", label="wrong")
    assert (swapped(row), reordered(row), padded(row)) == (None, None, None)
