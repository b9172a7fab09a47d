"""Tagged blocks: exactly one, several, none, crossed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.parsing.tags import block_span, find_blocks, one_block


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a>x</a>", "x"),
        ("s <a></a> e", ""),
        ("<a>x</a><a>y</a>", None),
        ("<a><a>x</a>", None),
        ("<a>x</a></a>", None),
        ("</a>x<a>", None),
        ("<a>x", None),
        ("x</a>", None),
        ("", None),
        ("<A>x</A>", None),
        ("<a>1\n<b>2</b></a>", "1\n<b>2</b>"),
    ],
)
def test_one_block(text, expected):
    assert one_block(text, "a") == expected
    span = block_span(text, "a")
    assert (span is None) == (expected is None)
    if span:
        assert text[span[0] : span[1]] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<a>x</a> <a>y</a>", ["x", "y"]),
        ("<a><a>x</a></a>", ["x"]),
        ("</a><a>x</a><a>", ["x"]),
        ("</a></a><a>", []),
    ],
)
def test_find_blocks(text, expected):
    assert find_blocks(text, "a") == expected


@given(st.lists(st.sampled_from(["<a>", "</a>", "x", "<", ">", "é"])).map("".join))
def test_blocks_hold_no_tag_and_agree_with_one_block(text):
    blocks = find_blocks(text, "a")
    assert all("<a>" not in block and "</a>" not in block for block in blocks)
    one = one_block(text, "a")
    if one is not None:
        assert blocks == [one]
