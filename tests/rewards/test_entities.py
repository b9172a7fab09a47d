"""Entity matching: right where the released matcher is wrong, and the released one as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.entities import EntityMatcher, make_matcher, recall
from rewards.entities_legacy import LegacyMatcher, legacy_normalise
from rewards.folding import _fold_runs, _fold_whole, fold_words

CASES = [
    ("Ur", "a natural city", False),
    ("Ur", "the city of UR.", True),
    ("Ur", "Ur-Nammu ruled", True),
    ("Al", "Alabama", False),
    ("Einstein", "Einstein’s wife", True),
    ("O'Brien", "Miles O’BRIEN", True),
    ("Spider-Man", "spider man", True),
    ("Café Müller", "the cafe\u0301 mu\u0308ller", True),
    ("Café", "the cafe", False),
    ("Cafe", "the cafe\u0301", False),
    ("Cafe", "cafés", False),
    ("Москва", "город МОСКВА стоит", True),
    ("Москва", "Московская", False),
    ("Straße", "STRASSE", True),
    ("ﬁnland", "Finland", True),
    ("ＵＲ", "city of Ur", True),
    ("Einstein", "Ein\u00adstein", True),
    ("Acme", "Acme™", True),
    ("İstanbul", "i\u0307stanbul", True),
    ("東京", "新東京タワー", True),
    ("東京", "東、京", False),
    ("東京 Tower", "新東京Tower。", True),
    ("東京 Tower", "東京Towers", False),
    ("Ur", "城市Ur是", True),
    ("서울", "서울은", True),
    ("กรุงเทพ", "ในกรุงเทพมหานคร", True),
    ("हिन्", "हिन्दी", False),
    ("हिन्दी", "हिन्दी भाषा", True),
    ("C++", "vitamin C", False),
    ("C++", "in C++.", True),
    ("C#", "#C", False),
    ("Ur", "##Ur", True),
    ("AT&T", "AT&T Inc.", True),
    ("New York", "New\n\n  York", True),
    ("New York", "New Yorker", False),
    ("Ur", "", False),
    ("1 2", "1_2", True),
]


@pytest.mark.parametrize(("name", "text", "expected"), CASES)
def test_correct_matcher(name, text, expected):
    assert EntityMatcher([[name]]).hits(text) == [expected]
    many = EntityMatcher([[name], *([f"filler {i}"] for i in range(50))])
    assert many.hits(text)[0] == expected
    padded = EntityMatcher([[name]]).hits("plain ascii " * 500 + text)
    assert padded == [expected]


def test_any_alias_counts_as_the_entity():
    matcher = EntityMatcher([["New York City", "NYC"], ["Paris"], ["Bonn", "Bonna"]])
    assert matcher.hits("From NYC and New York City to Bonna") == [True, False, True]
    assert recall(matcher.hits("NYC")) == pytest.approx(1 / 3)
    assert recall([]) == 0.0


@pytest.mark.parametrize("aliases", [[""], ["!!!"], [" \n"], ["☥", "…"], []])
def test_an_entity_that_folds_to_nothing_is_an_error(aliases):
    with pytest.raises(ValueError, match=r"gold entity 1 .*gold_entities"):
        EntityMatcher([["ok"], aliases])


def test_an_unusable_alias_beside_a_usable_one_is_listed():
    matcher = EntityMatcher([["Prince", "☥"]])
    assert matcher.unusable == ("☥",)
    assert matcher.hits("☥") == [False]


def test_matchers_are_built_once_per_task():
    entities = (("Ur",), ("Uruk",))
    assert make_matcher(entities) is make_matcher(entities)
    assert isinstance(make_matcher(entities, "legacy"), LegacyMatcher)


def test_legacy_mistakes_are_reproduced():
    def hit(name, text):
        return LegacyMatcher([[name]]).hits(text)[0]

    assert hit("Ur", "natural")
    assert hit("Łódź", "the d of")
    assert hit("Москва", "nothing")
    assert hit("!!!", "")
    assert hit("Spider-Man", "spider man")
    assert hit("京大", "東京，大阪")
    assert hit("Café", "cafe x")
    assert not hit("東京", "tokyo")
    assert legacy_normalise(" Ab-c_d É 東京! ") == "ab c_d 東 京"


words = st.text(
    alphabet="abZ9 -_.'é\u0301ßŁЖ東ー한ก\u0e31ि㎞ﬁ²™\u00ad\u200b+#\ud800İ",
    max_size=30,
)


@given(words)
def test_both_ways_of_folding_agree(text):
    whole, runs = _fold_whole(text), _fold_runs(text)
    assert fold_words(whole) == fold_words(runs)


@given(words)
def test_folding_is_stable(text):
    once = b" ".join(fold_words(text)).decode()
    assert b" ".join(fold_words(once)).decode() == once


@given(words, words, words)
def test_a_name_between_spaces_is_found(before, name, after):
    if fold_words(name):
        assert EntityMatcher([[name]]).hits(f"{before} {name} {after}") == [True]


@given(st.text(alphabet="abc ", max_size=40), st.text(alphabet="abc", min_size=1, max_size=3))
def test_ascii_words_against_the_definition(text, name):
    assert EntityMatcher([[name]]).hits(text) == [name in text.split()]
