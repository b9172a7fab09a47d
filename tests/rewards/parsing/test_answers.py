"""Where the final answer is found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.parsing.answers import extract_answer, last_box


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("so <answer> Paris </answer>.", "Paris"),
        ("<answer></answer>", ""),
        (r"<answer>\boxed{7}</answer> not \boxed{8}", "7"),
        (r"first \boxed{1}, then \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\text{New York}}", "New York"),
        (r"\boxed{a \} b}", r"a \} b"),
        (r"\boxed{done} and \boxed{cut", "done"),
        (r"<answer>a</answer><answer>b</answer> \boxed{c}", "c"),
        ("<answer>a</answer><answer>b</answer>", "<answer>a</answer><answer>b</answer>"),
        ("  The answer is Paris. ", "The answer is Paris."),
        ("", ""),
    ],
)
def test_extract_answer(content, expected):
    assert extract_answer(content) == expected


def test_box_is_looked_for_at_the_end_only():
    assert last_box(r"\boxed{early}" + "x" * 20_000) is None
    assert last_box("x" * 160_000 + r"\boxed{late}") == "late"


@given(st.lists(st.sampled_from(["\\boxed{", "{", "}", "\\}", "\\text{", "a", " "])).map("".join))
def test_never_raises_and_braces_balance(text):
    box = last_box(text)
    if box is not None:
        plain = box.replace("\\{", "").replace("\\}", "")
        assert plain.count("{") == plain.count("}")
    assert isinstance(extract_answer(text), str)


@given(st.text(alphabet="abc 12", min_size=1))
def test_block_round_trip(answer):
    assert extract_answer(f"because <answer>{answer}</answer>") == answer.strip()
