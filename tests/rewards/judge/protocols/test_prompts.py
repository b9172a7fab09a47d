"""Prompts: versions cover every word, foreign text stays inside its fence, lengths hold."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.judge.config import JudgeConfig
from rewards.judge.protocols import codes
from rewards.judge.protocols.codes import make_code
from rewards.judge.protocols.fence import ANSWER_HEAD, ANSWER_TAIL, shortened, visible
from rewards.judge.protocols.longrlvr import MAX_PASSAGES, passages
from rewards.judge.protocols.objects import object_form
from rewards.judge.protocols.rating import rating_form
from rewards.judge.protocols.registry import PROTOCOLS, make_protocol
from rewards.types import Task

TASK = Task(
    id="q1",
    question="In which city did she die?",
    answer="Paris",
    aliases=("Paris, France",),
    gold_chunks=(2, 5),
    chunk_texts={2: "She died in Paris.", 5: "It rained.", 7: "Not gold."},
)
PROMPTS = {
    "aa_lcr/1": "4da4195d431c88a1",
    "aa_lcr/1+json": "c52d4ae62b46f94a",
    "eapo/1": "248d57609b9692f0",
    "eapo/1+json": "04aba67eddaafe8b",
    "json/1": "51c1d64f50b5ef25",
    "longrlvr/1": "de80a5a0bb676c90",
    "longrlvr/1+json": "147862c35a2033cd",
}
"""Version -> hash of its prompt. A changed prompt needs a new version, and a new line here."""
HOSTILE = ["===", " candidate answer ", "begins", "ends", "\n", "\r", "\u2028", "\x85", "\x0b"]
HOSTILE += ["\x0c", "\x1c", "\x00", "\ud800", "\u202e", "<|im_end|>", "</s>", "[INST]", "a1b2c3"]
hostile = st.one_of(
    st.text(max_size=400),
    st.lists(
        st.sampled_from(HOSTILE),
        max_size=30,
    ).map("".join),
)


def whole(protocol, task, answer):
    return "\n\n".join(message["content"] for message in protocol.messages(task, answer))


@pytest.mark.parametrize(("name", "structured"), product(sorted(PROTOCOLS), (False, True)))
def test_the_version_covers_the_prompt(name, structured):
    protocol = make_protocol(name, structured)
    asked = [dict(m) for m in protocol.messages(TASK, "Lyon")], protocol.response_format()
    found = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
    assert PROMPTS[protocol.version] == found, "the prompt changed: give it a new version"


def test_every_protocol_of_the_recipe_exists_and_states_its_judge():
    allowed = JudgeConfig.model_fields["protocol"].annotation.__args__
    assert set(PROTOCOLS) == set(allowed)
    judges = {name: (p.model, p.temperature, p.max_tokens) for name, p in PROTOCOLS.items()}
    assert judges == {
        "aa_lcr": ("qwen3-235b-a22b-instruct-2507", 0.0, 4096),
        "longrlvr": ("default", 0.0, 512),
        "eapo": ("gpt-4o-2024-11-20", 0.0, 1024),
        "json": ("qwen3-235b-a22b-instruct-2507", 0.0, 1024),
    }
    with pytest.raises(ValueError, match=r"set outcome\.judge\.protocol to one of"):
        make_protocol("aalcr")


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_a_response_format_is_asked_for_only_in_structured_form(name):
    schema = make_protocol(name, structured=True).response_format()
    assert schema["json_schema"]["strict"] is True
    json.dumps(schema)
    assert (make_protocol(name).response_format() is None) == (name != "json")


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_the_judge_sees_question_gold_aliases_and_answer(name):
    prompt = whole(make_protocol(name), TASK, "She died in Lyon.")
    for text in ("In which city did she die?", "Paris, France", "She died in Lyon."):
        assert text in prompt
    assert ("It rained." in prompt) == (name == "longrlvr")
    assert "Not gold." not in prompt


@given(hostile, st.sampled_from(sorted(PROTOCOLS)), st.booleans())
def test_an_answer_stays_inside_its_fence(answer, name, structured):
    protocol = make_protocol(name, structured)
    code = make_code(protocol.version, TASK, answer)
    user = protocol.messages(TASK, answer)[-1]["content"]
    ends = f"=== candidate answer {code} ends ==="
    inside, fence, after = user.partition(f"=== candidate answer {code} begins ===\n")[2].partition(
        f"\n{ends}"
    )
    assert fence
    assert inside == shortened(visible(answer))
    assert code not in inside
    assert code not in user.partition("=== candidate answer ")[0]
    form = object_form(code) if protocol.structured else protocol.reply_form(code)
    assert after == f"\n\n{form}"
    user.encode()


@given(hostile)
def test_the_code_is_in_nothing_the_judge_could_quote(answer):
    code = make_code("v/1", TASK, answer)
    assert re.fullmatch(r"(?=.*[abcdf])(?=.*[0-9])[0-9a-f]{6}", code)
    assert code == make_code("v/1", TASK, answer)
    for text in (answer, unicodedata.normalize("NFKC", answer), re.sub(r"\W", "", answer)):
        assert code not in text.casefold()


@pytest.mark.parametrize("between", ["z", " Z. ", "\uff3a"])
def test_a_code_that_the_answer_holds_in_any_dress_is_never_drawn(monkeypatch, between):
    """Two digits instead of six, and an answer that lists every code but one."""
    monkeypatch.setattr(codes, "CODE_LENGTH", 2)
    pairs = [f"{n:02x}" for n in range(256) if n != 0x7C]
    answer = between.join(f"{pair[0].upper()}\u200b{pair[1]}" for pair in pairs)
    assert make_code("v", Task(id="q", question="q", answer="z"), answer) == "7c"


def test_the_code_depends_on_everything_that_is_judged():
    other = Task(id="q1", question="In which city did she die?", answer="Rome")
    codes = [
        make_code("v/1", TASK, "Lyon"),
        make_code("v/2", TASK, "Lyon"),
        make_code("v/1", TASK, "Lyo"),
        make_code("v/1", other, "Lyon"),
    ]
    assert len(set(codes)) == 4


def test_what_is_invisible_or_a_control_token_is_written_out():
    assert visible("a\u200b\u200bb\u202ec\x1b") == "a⟨U+200B x 2⟩b⟨U+202E⟩c⟨U+001B⟩"
    assert visible("<|im_end|></s>[INST]<think>") == "‹|im_end|›‹/s›⟦INST⟧‹think›"
    assert visible("a\r\nb\rc\td\ud800") == "a\nb\nc    d⟨U+D800⟩"
    assert visible("Zürich 東京 Привет नमस्ते [1] x²") == "Zürich 東京 Привет नमस्ते [1] x²"


@given(st.text())
def test_visible_text_has_one_kind_of_line_end_and_hides_nothing(text):
    shown = visible(text)
    assert len(shown.splitlines()) <= shown.count("\n") + 1
    assert not any(unicodedata.category(c) in ("Cf", "Cs", "Co", "Zl", "Zp") for c in shown)
    assert visible(shown) == shown


def test_an_overlong_answer_keeps_both_ends_and_says_what_is_missing():
    text = "A" * 9_000 + "B" * 3_000
    short = shortened(text)
    assert short.startswith("A" * ANSWER_HEAD)
    assert short.endswith("B" * ANSWER_TAIL)
    assert "[here 6,000 characters are left out]" in short
    assert shortened("A" * (ANSWER_HEAD + ANSWER_TAIL)) == "A" * (ANSWER_HEAD + ANSWER_TAIL)
    assert shortened("abcdef", head=2, tail=0) == "ab\n[here 4 characters are left out]\n"


def chunks(*lengths):
    texts = {n: chr(ord("a") + n) * length for n, length in enumerate(lengths)}
    return Task(id="q", question="q", answer="a", gold_chunks=tuple(texts), chunk_texts=texts)


def test_gold_chunks_enter_whole_while_they_fit():
    text = passages(chunks(5_000, 6_000, 4_000, 1_000))
    assert "Passages with the answer: 3 of 4." in text
    assert "a" * 5_000 in text
    assert "b" * 6_000 in text
    assert "c" * 100 not in text
    assert "d" * 1_000 in text


def test_a_single_chunk_too_long_is_cut_and_the_prompt_says_so():
    text = passages(chunks(13_000, 14_000))
    assert "1 of 2, cut after 12,000 of its 13,000 characters." in text
    assert "a" * MAX_PASSAGES in text
    assert "a" * (MAX_PASSAGES + 1) not in text


def test_missing_chunk_texts_are_said_or_counted():
    assert "No passage" in passages(Task(id="q", question="q", answer="a"))
    short = Task(id="q", question="q", answer="a", gold_chunks=(1, 1, 4), chunk_texts={4: "x"})
    assert "1 of 2." in passages(short)


@given(st.lists(st.integers(0, 9_000), max_size=6))
def test_gold_chunks_never_exceed_the_limit(lengths):
    text = passages(chunks(*lengths))
    body = "".join(line for line in text.splitlines()[1:] if not line.startswith("==="))
    assert len(body) <= MAX_PASSAGES
    assert (len(body) > 0) == any(lengths)


def test_the_rating_form_states_its_scale():
    assert "`rating ab12cd: N`, where N is a whole number from 1 (worst) to 5" in rating_form(
        1, 5, decimals=False, code="ab12cd"
    )
    assert "decimals allowed" in rating_form(1, 10, decimals=True, code="ab12cd")


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_answers_of_a_group_share_the_prompt_up_to_their_own_fence(name):
    one, other = (whole(make_protocol(name), TASK, answer) for answer in ("Lyon", "Paris"))
    mark = "=== candidate answer "
    assert one.partition(mark)[0] == other.partition(mark)[0]
    assert "In which city" in one.partition(mark)[0]
