"""Which comma separates values, and what a run of a sweep is called."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.slurm.sweep import SweepError, split_values, variants
from slime_ext.recipe.errors import RecipeError


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", ["1"]),
        ("1,2", ["1", "2"]),
        ("[1,2]", ["[1,2]"]),
        ("[1,2],[3]", ["[1,2]", "[3]"]),
        ('"a,b",c', ['"a,b"', "c"]),
        ("{ a = 1, b = [2, 3] },{}", ["{ a = 1, b = [2, 3] }", "{}"]),
        ("'it,s'", ["'it,s'"]),
        ("", [""]),
    ],
)
def test_only_outer_commas_separate(text: str, values: list[str]) -> None:
    assert split_values(text) == values


leaf = st.one_of(st.integers(), st.booleans(), st.text("abc,[]{}", max_size=6))
values = st.recursive(leaf, lambda inner: st.lists(inner, max_size=3), max_leaves=6)


def toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


@given(st.lists(values, min_size=1, max_size=4))
def test_values_written_as_toml_come_back(given_values: list[object]) -> None:
    parts = split_values(",".join(map(toml, given_values)))
    assert [tomllib.loads(f"v = {part}")["v"] for part in parts] == given_values


def test_combinations_and_names() -> None:
    found = variants(["optimiser.lr=1e-6,2e-6", "loss.icepop=[0.5, 2.0]"], "0,1")
    assert [one.suffix for one in found] == [
        "-lr1e-6-seed0",
        "-lr1e-6-seed1",
        "-lr2e-6-seed0",
        "-lr2e-6-seed1",
    ]
    assert found[0].overrides == ("optimiser.lr=1e-6", "loss.icepop=[0.5, 2.0]", "seed=0")


def test_one_combination_keeps_the_name() -> None:
    assert [one.suffix for one in variants(["a.b=1"], "3")] == [""]
    assert [one.suffix for one in variants([])] == [""]


def test_names_that_would_be_equal_are_numbered() -> None:
    found = variants(['data.train="a/b","a b"'])
    assert [one.suffix for one in found] == ["-train-a-b-1", "-train-a-b-2"]


@given(st.lists(st.text(min_size=1, max_size=200), min_size=2, max_size=4, unique=True))
def test_every_name_is_one_a_recipe_may_have(texts: list[str]) -> None:
    plain = [re.sub(r"[^ -~]|[\"\\\\]", "_", text) for text in texts]
    quoted = [f'"{text}{number}"' for number, text in enumerate(plain)]
    found = variants([f"data.train={','.join(quoted)}"])
    names = [f"run{one.suffix}" for one in found]
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name) for name in names)
    assert len(set(names)) == len(texts)


@pytest.mark.parametrize("override", ["a.b=1,,2", "a.b=1,", "a.b=,1"])
def test_an_empty_value_is_refused(override: str) -> None:
    with pytest.raises(SweepError, match="is empty"):
        variants([override])


def test_a_value_given_twice_is_refused() -> None:
    with pytest.raises(SweepError, match="twice"):
        variants(["seed=1,1"])


def test_what_is_no_override_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"section\.key=value"):
        variants(["seed"])
