"""Recipes: chains, origins, overrides, and errors that say what to type."""

from __future__ import annotations

from pathlib import Path

import pytest

from slime_ext.recipe.errors import RecipeError
from slime_ext.recipe.load import dump_recipe, load_recipe

MINIMAL = """
name = "small"
[model]
path = "m"
[data]
train = "t.jsonl"
max_prompt_tokens = 100
[rollout]
steps = 2
prompts = 4
group_size = 2
max_response_tokens = 10
context_tokens = 200
[reward]
kind = "chunk"
[optimiser]
lr = 2e-6
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "r.toml"
    path.write_text(MINIMAL)
    return path


def test_a_float_in_exponent_form_stays_a_float(recipe: Path) -> None:
    assert load_recipe(recipe).recipe.optimiser.lr == 2e-6


def test_an_override_wins_and_is_named_as_origin(recipe: Path) -> None:
    loaded = load_recipe(recipe, ["reward.kind=rubric", "reward.rubric.alpha=0.5"])
    assert loaded.recipe.reward.kind == "rubric"
    assert loaded.recipe.reward.rubric.alpha == 0.5
    assert loaded.origins["reward.kind"] == "--set reward.kind=rubric"
    assert loaded.origins["optimiser.lr"] == f"{recipe}:17"
    assert "optimiser.eps" not in loaded.origins


def test_later_files_of_a_chain_win(tmp_path: Path, recipe: Path) -> None:
    (tmp_path / "mid.toml").write_text('base = "r.toml"\nseed = 4\n[rollout]\nsteps = 9\n')
    top = tmp_path / "top.toml"
    top.write_text('base = "mid.toml"\n[rollout]\nsteps = 11\n')
    loaded = load_recipe(top)
    assert (loaded.recipe.rollout.steps, loaded.recipe.seed) == (11, 4)
    assert loaded.origins["seed"] == f"{(tmp_path / 'mid.toml').resolve()}:2"


def test_the_site_file_is_weaker_than_the_recipe(
    tmp_path: Path, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site.toml"
    site.write_text('seed = 5\n[track]\nproject = "ours"\n[rollout]\nsteps = 77\n')
    monkeypatch.setenv("LONGRL_SITE", str(site))
    loaded = load_recipe(recipe)
    assert (loaded.recipe.seed, loaded.recipe.track.project) == (5, "ours")
    assert loaded.recipe.rollout.steps == 2


def test_a_chain_in_a_circle_and_one_too_deep_are_refused(tmp_path: Path, recipe: Path) -> None:
    a = tmp_path / "a.toml"
    a.write_text('base = "b.toml"\n')
    (tmp_path / "b.toml").write_text('base = "a.toml"\n')
    with pytest.raises(RecipeError, match="circle"):
        load_recipe(a)
    for level in range(5):
        below = "r.toml" if level == 0 else f"l{level - 1}.toml"
        (tmp_path / f"l{level}.toml").write_text(f'base = "{below}"\n')
    load_recipe(tmp_path / "l2.toml")
    with pytest.raises(RecipeError, match="deeper than 3"):
        load_recipe(tmp_path / "l3.toml")


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("reward.chunk.btea=3.0", r"reward\.chunk\.btea: unknown key; did you mean 'beta'"),
        ("optimizer.lr=1.0", "did you mean 'optimiser'"),
        ("rollout.steps=0", "rollout.steps: Input should be greater than 0"),
        ("rollout.steps=many", "valid integer"),
        ("rollout.group_size=1", "greater than or equal to 2"),
        ("rollout.updates=3", "updates = 3 does not divide prompts = 4"),
        ("data.max_prompt_tokens=200", "leaves no room for a response"),
        ("model.family=qwen9", "qwen3"),
        ("name=a/b", "name"),
    ],
)
def test_a_wrong_value_is_named_with_its_remedy(recipe: Path, override: str, expected: str) -> None:
    with pytest.raises(RecipeError, match=expected) as error:
        load_recipe(recipe, [override])
    assert "--set" in str(error.value) or str(recipe) in str(error.value)


def test_a_misspelt_key_in_a_file_is_named_with_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(MINIMAL + "\n[advantage]\nstdd = false\n")
    with pytest.raises(RecipeError, match=r"bad\.toml:20: advantage\.stdd: .*'std'"):
        load_recipe(path)


@pytest.mark.parametrize("text", ["rollout.steps", "=3", "a.b=[1,"])
def test_an_override_that_is_not_one_is_refused(recipe: Path, text: str) -> None:
    with pytest.raises(RecipeError, match="--set"):
        load_recipe(recipe, [text])


def test_a_missing_key_says_what_to_add(tmp_path: Path) -> None:
    path = tmp_path / "no_lr.toml"
    path.write_text(MINIMAL.replace("lr = 2e-6", ""))
    with pytest.raises(RecipeError, match=r"optimiser\.lr.*required|optimiser: this key"):
        load_recipe(path)


def test_missing_and_broken_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no such recipe file"):
        load_recipe(tmp_path / "none.toml")
    (tmp_path / "on.toml").write_text('seed = 1\nbase = "gone.toml"\n')
    with pytest.raises(RecipeError, match=r"on\.toml:2: base = 'gone\.toml': no such recipe"):
        load_recipe(tmp_path / "on.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("name = \n")
    with pytest.raises(RecipeError, match="not valid TOML"):
        load_recipe(broken)


def test_a_dumped_recipe_loads_as_the_same_recipe(tmp_path: Path, recipe: Path) -> None:
    loaded = load_recipe(
        recipe,
        [
            "loss.icepop=[0.5, 2.0]",
            "model.chat_template_kwargs.a=1",
            'outcome.judge.endpoints=[{url="http://judge:30000/v1"}]',
        ],
    )
    copy = tmp_path / "copy.toml"
    copy.write_text(dump_recipe(loaded.recipe))
    assert load_recipe(copy).recipe == loaded.recipe


RECIPES = [
    path
    for path in sorted(Path("configs").rglob("*.toml"))
    if path.parent.name != "cluster" and path.name != "base.toml"
]


@pytest.mark.parametrize("path", RECIPES, ids=str)
def test_every_shipped_recipe_is_valid(path: Path) -> None:
    assert load_recipe(path).recipe.name
