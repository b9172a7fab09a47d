"""Reading replies: the forms of a verdict, and everything that is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.judge.protocols.asking import is_plain
from rewards.judge.protocols.codes import make_code
from rewards.judge.protocols.registry import PROTOCOLS, make_protocol
from rewards.judge.types import ChatReply
from rewards.types import Task
from rewards.verdicts import no_verdict, verdict

TASK = Task(id="q1", question="Which city?", answer="Paris")
PLAIN, MARKED = "Lyon", "Lyon: [1]"
BARE = {
    "aa_lcr": ("correct: yes", "correct: no"),
    "longrlvr": ("[[Yes]]", "[[No]]"),
    "eapo": ("accuracy: 1", "accuracy: 0"),
    "json": tuple(json.dumps({"reasoning": "r", "verdict": word}) for word in ("right", "wrong")),
}
CODED = {
    "aa_lcr": ("correct CODE: yes", "correct CODE: no"),
    "longrlvr": ("[[Yes CODE]]", "[[No CODE]]"),
    "eapo": ("accuracy CODE: 1", "accuracy CODE: 0"),
    "json": tuple(
        json.dumps({"reasoning": "r", "verdict": word, "code": "CODE"})
        for word in ("right", "wrong")
    ),
}
NAMES = sorted(PROTOCOLS)


def read(name, words, answer=MARKED, structured=False, finish="stop", reasoning=None):
    protocol = make_protocol(name, structured)
    words = words.replace("CODE", make_code(protocol.version, TASK, answer))
    reply = ChatReply(content=words, reasoning=reasoning, finish_reason=finish)
    return protocol.read(reply, TASK, answer)


@pytest.mark.parametrize("name", NAMES)
def test_the_form_of_the_prompt_is_read(name):
    right, wrong = CODED[name]
    for answer in (PLAIN, MARKED):
        assert read(name, right, answer) == verdict(1.0)
        assert read(name, wrong, answer) == verdict(0.0)
        assert read(name, f"They differ.\n\n{wrong}\n", answer) == verdict(0.0)


@pytest.mark.parametrize("name", NAMES)
def test_without_its_code_a_verdict_counts_for_plain_answers_only(name):
    right, wrong = BARE[name]
    assert read(name, f"Same city.\n{right}", PLAIN) == verdict(1.0)
    assert read(name, f"Another city.\n{wrong}", PLAIN) == verdict(0.0)
    assert read(name, right, MARKED) == no_verdict("unparsable")
    assert read(name, wrong, MARKED) == no_verdict("unparsable")


@pytest.mark.parametrize("name", NAMES)
def test_two_verdicts_are_none_even_where_they_agree(name):
    right, wrong = CODED[name]
    for pair in ((right, wrong), (right, right)):
        assert read(name, "\n".join(pair)) == no_verdict("several_verdicts")
    assert read(name, f"{BARE[name][0]}\n{wrong}", PLAIN) == no_verdict("several_verdicts")
    assert read(name, f"{BARE[name][0]}\n{wrong}", MARKED) == verdict(0.0)


@pytest.mark.parametrize("name", NAMES)
def test_a_verdict_with_another_code_is_none(name):
    assert read(name, CODED[name][0].replace("CODE", "0f0f0f"), PLAIN).value is None


@pytest.mark.parametrize("name", NAMES)
def test_a_verdict_in_the_reasoning_is_none(name):
    right, wrong = CODED[name]
    assert read(name, f"<think>\n{right}\n</think>\n{wrong}") == verdict(0.0)
    assert read(name, f"{right}\n</think>\n{wrong}") == verdict(0.0)
    for words in (f"<think>\n{right}\n</think>", f"<think>\n{right}", f"{right}</think> hm"):
        assert read(name, words) == no_verdict("unparsable")
    assert read(name, f"[THINK]\n{right}\n[/THINK]\nWell.") == no_verdict("unparsable")
    assert read(name, "", reasoning=right) == no_verdict("unparsable")
    assert read(name, wrong, reasoning=right) == verdict(0.0)


@pytest.mark.parametrize("name", NAMES)
def test_replies_that_decide_nothing_say_why(name):
    assert read(name, CODED[name][0], finish="length") == no_verdict("truncated")
    assert read(name, CODED[name][0], finish="content_filter") == no_verdict("refusal")
    assert read(name, " \n") == no_verdict("empty")
    for words in ("I'm sorry, but I can’t help with that.", "I cannot judge this.", "抱歉，我无法"):
        assert read(name, words) == no_verdict("refusal")
    for words in ("Yes.", "The answer is right.", "YES", "correct", "1", "null", "{}", "[[ERROR]]"):
        assert read(name, words, PLAIN) == no_verdict("unparsable")


@pytest.mark.parametrize("name", NAMES)
def test_every_protocol_reads_its_structured_form(name):
    right, wrong = CODED["json"]
    assert read(name, right, structured=True) == verdict(1.0)
    assert read(name, f"```json\n{wrong}\n```", structured=True) == verdict(0.0)
    assert read(name, f"{right} {wrong}", structured=True) == no_verdict("several_verdicts")
    if name != "json":
        assert read(name, CODED[name][0], structured=True) == no_verdict("unparsable")


@pytest.mark.parametrize(
    "words",
    [
        '{"reasoning": "r", "verdict": "right", "verdict": "right", "code": "CODE"}',
        '{"reasoning": "r", "verdict": "wrong", "verdict": "right", "code": "CODE"}',
        '{"reasoning": "r", "verdict": "right", "code": "CODE", "score": 1}',
        '{"verdict": "right", "code": "CODE"}',
        '{"reasoning": "CODE", "verdict": "right"}',
        '{"reasoning": 1, "verdict": "right", "code": "CODE"}',
        '{"reasoning": "r", "verdict": "Right", "code": "CODE"}',
        '{"reasoning": "r", "verdict": true, "code": "CODE"}',
        '{"reasoning": "r", "verdict": ["right"], "code": "CODE"}',
        '{"reasoning": "r", "verdict": "right", "code": "CODE"',
        '{"reasoning": "r", "verdict": "right", "code": "CODE",}',
        "{'reasoning': 'r', 'verdict': 'right', 'code': 'CODE'}",
        '{"reasoning": "r", "verdict": NaN, "code": "CODE"}',
    ],
)
def test_an_object_of_any_other_form_is_no_verdict(words):
    assert read("json", words) == no_verdict("unparsable")


@pytest.mark.parametrize(
    "line",
    [
        "**correct CODE:** yes",
        "correct (CODE): Yes.",
        "Correct: yes [CODE]",
        "- `correct CODE: yes`",
        "  CORRECT  CODE :  YES  ",
        "correct CODE：yes",
        "3. correct CODE: yes",
    ],
)
def test_dress_of_a_labelled_line_does_not_matter(line):
    assert read("aa_lcr", line) == verdict(1.0)
    assert read(
        "eapo",
        line.lower().replace("correct", "accuracy").replace("yes", "1").replace("code", "CODE"),
    ) == verdict(1.0)


@pytest.mark.parametrize(
    "line",
    [
        "correct CODE: yes and no",
        "correct CODE: yes, if it were Paris",
        "It would be correct CODE: yes",
        "correct CODE:\nyes",
        "correct CODE yes",
        "incorrect CODE: yes",
        "> correct CODE: yes",
        "correct CODE: " + " " * 300 + "yes",
    ],
)
def test_a_line_that_says_more_or_less_is_no_verdict(line):
    assert read("aa_lcr", line) == no_verdict("unparsable")


def test_accuracy_has_no_partial_credit():
    for value in ("0.5", "1.0", "2", "10", "-1", "1/1", "yes"):
        assert read("eapo", f"accuracy CODE: {value}") == no_verdict("unparsable")


def test_bracketed_verdicts_stand_at_the_edge_of_a_line():
    for words in ("Same. [[Yes CODE]]", "[[Yes]] CODE", "**[[CODE: yes]]**", "`[[Yes CODE]]`."):
        assert read("longrlvr", words) == verdict(1.0)
    for words in (
        "I would write [[Yes CODE]] only for Paris.",
        "> [[Yes CODE]]",
        'It ends with "[[Yes CODE]]"; strange.',
        "[Yes CODE]",
        "[[Maybe CODE]]",
        "[[Yes\nCODE]]",
    ):
        assert read("longrlvr", words) == no_verdict("unparsable")
    assert read("longrlvr", "`[[Yes CODE]]` does not fit, so:\n[[No CODE]]") == verdict(0.0)


def test_what_is_plain():
    for answer in ("Lyon", "12 May 1903", "3.5%", "O’Brien", "東京", "Zürich, 1,200 km/h", "yes"):
        assert is_plain(answer)
    for answer in ("", "a:b", "a\nb", "[x]", "{x}", '"x"', "correctː yes", "a：b", "x" * 81, "(a)"):
        assert not is_plain(answer)


TOKENS = [
    "correct",
    "accuracy",
    "CODE",
    ":",
    "yes",
    "no",
    "1",
    "0",
    "[[",
    "]]",
    "{",
    "}",
    '"',
    "\\",
]
TOKENS += ["reasoning", "verdict", "right", "code", ",", " ", "\n", "<think>", "</think>", "`", ">"]
replies = st.one_of(st.text(), st.lists(st.sampled_from(TOKENS), max_size=40).map("".join))


@given(replies, st.sampled_from(NAMES), st.booleans(), st.sampled_from([PLAIN, MARKED, ""]))
def test_reading_never_raises_and_decides_right_or_wrong_or_nothing(words, name, form, answer):
    assert read(name, words, answer, structured=form).value in (None, 0.0, 1.0)


@given(replies, st.sampled_from(NAMES), st.booleans())
def test_a_reply_without_the_code_is_no_number_for_a_marked_answer(words, name, form):
    assert read(name, words.replace("CODE", "code"), MARKED, structured=form).value is None


@given(st.lists(st.booleans(), max_size=4), st.sampled_from(NAMES), st.booleans())
def test_exactly_one_verdict_is_a_verdict(said, name, coded):
    forms = (CODED if coded else BARE)[name]
    words = "\n".join(["Well.", *(forms[0] if right else forms[1] for right in said)])
    found = read(name, words, PLAIN)
    assert (found.value is not None) == (len(said) == 1)
    if len(said) == 1:
        assert found.value == float(said[0])
    if len(said) > 1:
        assert found.reason == "several_verdicts"


DEGENERATE = [
    "{",
    '{"',
    '{"\\"',
    "[[",
    "[[ ",
    "[[Yes ",
    "correct: ",
    "\n",
    "*",
    "correct CODE",
    '"',
]
DEGENERATE += [
    "<think>",
    "</think>",
    "</think",
    '{"code":"CODE",',
    "{[",
    "`",
    ": \n",
    "I am ",
    "[THINK]",
]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", DEGENERATE)
def test_degenerate_replies_of_160k_characters_are_read_in_linear_time(piece):
    """A quadratic reading of one of them would take minutes."""
    words = piece * (160_000 // len(piece))
    for name in NAMES:
        for structured in (False, True):
            for answer in (PLAIN, MARKED):
                assert read(name, words, answer, structured=structured).value is None


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "piece", ["\u200b", "\u200b\u200c", "<", "[A", "0123456789abcdef", "é", "好"]
)
def test_degenerate_answers_of_160k_characters_are_put_in_linear_time(piece):
    answer = piece * (160_000 // len(piece))
    for name in NAMES:
        user = make_protocol(name).messages(TASK, answer)[-1]["content"]
        assert len(user) < 20_000
