"""The thinking block: every count of closing tags, every reason for ill-formed, every family."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.parsing.families import FAMILIES, get_family
from rewards.parsing.thinking import parse_response
from rewards.types import Response

PIECES = ["<think>", "</think>", "<|im_end|>", "<eos>", " ", "\n", "a", "é", "北", "\ud800", "<"]


def parse(text, family="qwen3", **fields):
    parsed = parse_response(Response(text, **fields), FAMILIES[family])
    return parsed.reasoning, parsed.content, parsed.problems


@pytest.mark.parametrize("family", ["qwen3", "deepseek_r1", "lab"])
@pytest.mark.parametrize(
    "text", ["r</think>a", "<think>r</think>a", "\n<think>\nr\n</think>\n\na\n", "r</think> a"]
)
def test_opening_tag_is_optional(family, text):
    assert parse(text, family) == ("r", "a", ())


def test_without_closing_tag_the_template_decides():
    assert parse("a", "qwen3") == ("a", "", ("no_close_tag", "empty_content"))
    assert parse("a", "deepseek_r1") == ("", "a", ("no_close_tag", "empty_reasoning"))
    assert parse("a", "lab") == ("", "a", ("no_close_tag",))
    for family in ("deepseek_r1", "lab"):
        assert parse("<think>a", family) == ("a", "", ("no_close_tag", "empty_content"))


@pytest.mark.parametrize("family", ["qwen3", "deepseek_r1", "lab"])
def test_many_closing_tags_keep_the_last_part_as_content(family):
    assert parse("r</think>x</think>a", family) == ("r</think>x", "a", ("many_close_tags",))


def test_empty_response():
    assert parse("") == ("", "", ("no_close_tag", "empty_reasoning", "empty_content"))
    assert parse("", "plain") == ("", "", ("empty_content",))


def test_empty_parts():
    assert parse(" \n</think>a")[2] == ("empty_reasoning",)
    assert parse("<think>\n\n</think>\n\na")[2] == ("empty_reasoning",)
    assert parse("<think></think>a", "lab") == ("", "a", ())
    assert parse("r</think> \n ")[2] == ("empty_content",)


def test_special_tokens_count_in_the_content_only():
    assert parse("r<|im_start|></think>a")[2] == ()
    assert parse("r</think>a<|im_start|>")[2] == ("special_token_in_content",)
    assert parse("r</think>a<｜User｜>b", "deepseek_r1")[2] == ("special_token_in_content",)
    assert parse("r</think>a <q> b", "lab")[2] == ("special_token_in_content",)
    assert parse("a</s>b", "plain")[2] == ("special_token_in_content",)
    assert parse("r</think>a<think>b")[2] == ("open_tag_in_content",)


def test_stop_token_is_checked_for_completed_responses():
    text = "r</think>a"
    assert parse(text, stop="<|im_end|>")[2] == ()
    assert parse(text, stop="<|endoftext|>")[2] == ("wrong_stop",)
    assert parse(text, stop="<|eot_id|>")[2] == ("wrong_stop",)
    assert parse(text, stop=None)[2] == ()
    assert parse(text, stop="<|eot_id|>", status="truncated")[2] == ()
    assert parse(text, "deepseek_r1", stop="<｜end▁of▁sentence｜>")[2] == ()
    assert parse(text, "lab", stop="<eos>")[2] == ()
    assert parse("a", "plain", stop="<|eot_id|>")[2] == ()
    assert parse("a", "plain", stop="<eos>")[2] == ("wrong_stop",)


def test_plain_family_has_no_thinking():
    assert parse("r</think>a", "plain") == ("", "r</think>a", ())


def test_unknown_family_names_the_known_ones():
    with pytest.raises(ValueError, match="qwen3"):
        get_family("qwen")


@given(st.lists(st.sampled_from(PIECES)).map("".join), st.sampled_from(sorted(FAMILIES)))
def test_never_raises_and_well_formed_means_both_parts(text, name):
    family = FAMILIES[name]
    parsed = parse_response(Response(text), family)
    assert parsed.content in text
    if not parsed.problems:
        assert parsed.content
        assert parsed.reasoning or not (family.thinking and family.needs_reasoning)
        if family.thinking:
            assert text.count("</think>") == 1


@given(st.text(alphabet="ab \n.", min_size=1), st.text(alphabet="ab \n.", min_size=1))
def test_round_trip(reasoning, content):
    parsed = parse_response(Response(f"<think>{reasoning}</think>{content}"), FAMILIES["qwen3"])
    assert (parsed.reasoning, parsed.content) == (reasoning.strip(), content.strip())
