"""Ratings: read strictly, never clamped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.judge.protocols.rating import Rating, rating_form, read_rating


@pytest.mark.parametrize(
    ("text", "low", "high", "decimals", "reason"),
    [
        ("[[90]]", 0, 1, True, "off_scale"),
        ("[ERROR 503]", 1, 10, True, "unparsable"),
        ("[[ERROR 503]]", 1, 10, True, "unparsable"),
        ("score: 1.5", 1, 5, False, "not_whole"),
        ("score: 5.0", 1, 5, False, "not_whole"),
        ("-0.1", 0, 1, True, "off_scale"),
        ("rating: 0", 1, 10, True, "off_scale"),
        ("rating: 10.01", 1, 10, True, "off_scale"),
        ("rating: 8/100", 1, 10, True, "off_scale"),
        ("rating: 8/5", 1, 10, True, "off_scale"),
        ("rating: 1e1", 1, 10, True, "unparsable"),
        ("rating: 7,5", 1, 10, True, "unparsable"),
        ("rating: nan", 1, 10, True, "unparsable"),
        ("rating: ٣", 1, 10, True, "unparsable"),
        ("rating: 7 or 8", 1, 10, True, "unparsable"),
        ("rating: 7-8", 1, 10, True, "unparsable"),
        ("rating: .5", 0, 1, True, "unparsable"),
        ("rating: 7\nrating: 7", 1, 10, True, "several_ratings"),
        ("rating: 7\n[[7]]", 1, 10, True, "several_ratings"),
        ("About 7 of 10 points.", 1, 10, True, "unparsable"),
        ("HTTP 503", 1, 10, True, "unparsable"),
        ("I cannot rate this.", 1, 10, True, "unparsable"),
        ("<think>rating: 7</think>", 1, 10, True, "unparsable"),
        ("<think>rating: 7", 1, 10, True, "unparsable"),
        ("", 1, 10, True, "empty"),
        (" \n", 1, 10, True, "empty"),
    ],
)
def test_what_is_no_rating(text, low, high, decimals, reason):
    assert read_rating(text, low, high, decimals) == Rating(None, reason)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("rating: 7.5", 7.5),
        ("Good question.\n**Rating:** 7.5", 7.5),
        ("Score: 10", 10.0),
        ("[[7.5]]", 7.5),
        ("7.5", 7.5),
        ("rating: 8/10", 8.0),
        ("8/10", 8.0),
        ("`rating: 1`.", 1.0),
        ("rating: 7.", 7.0),
        ("<think>rating: 2</think>\nrating: 9", 9.0),
    ],
)
def test_the_forms_of_a_rating(text, value):
    assert read_rating(text, 1, 10, decimals=True) == Rating(value)


def test_with_a_code_only_the_line_that_carries_it_counts():
    def read(text):
        return read_rating(text, 1, 5, decimals=False, code="ab12cd")

    assert read("rating: 5\nscore 999999: 5\n[[5]]\nrating ab12cd: 2") == Rating(2.0)
    for text in ("rating: 5", "[[5]]", "5", "rating ab12ce: 5", "rating ab12cdd: 5"):
        assert read(text) == Rating(None, "unparsable")
    assert read("rating ab12cd: 2\nrating ab12cd: 3") == Rating(None, "several_ratings")
    assert "rating ab12cd: N" in rating_form(1, 5, decimals=False, code="ab12cd")


@given(st.text(), st.booleans(), st.sampled_from([None, "ab12cd"]))
def test_a_rating_is_on_the_scale_or_has_a_reason(text, decimals, code):
    found = read_rating(text, 1, 10, decimals, code)
    assert (found.value is None) == (found.reason is not None)
    assert found.value is None or 1 <= found.value <= 10


@given(st.floats(-30, 30).map(lambda x: round(x, 3)))
def test_a_number_is_read_as_it_stands_or_not_at_all(number):
    found = read_rating(f"rating: {number:.3f}", 1, 10, decimals=True)
    assert found == (Rating(number) if 1 <= number <= 10 else Rating(None, "off_scale"))


@given(st.text(alphabet=st.characters(exclude_categories=["Nd"])))
def test_a_reply_without_a_digit_is_never_a_number(text):
    assert read_rating(text, 0, 10, decimals=True).value is None


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["rating: ", "1", "[[", "1\n", "\n", "* ", "rating: 1/"])
def test_degenerate_replies_are_read_in_linear_time(piece):
    assert read_rating(piece * (160_000 // len(piece)), 1, 10, decimals=True).value is None
