"""The recipes that ship: each loads, and says what its paper says."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from launch.arguments import slime_arguments
from launch.models.facts import known_models, shape_for
from launch.plan.plan import make_plan
from launch.preflight.areas import preflight
from launch.preflight.finding import exit_code
from slime_ext.data.hub.names import is_hub, parse_hub
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.places import configs_folder
from slime_ext.recipe.schema import Recipe
from tests.configs.recipes import keys_of, load, recipe_files, value
from tests.configs.stated import ABLATIONS, ROLLOUTS, STATED

LABS = {"embedded/lab", "embedded/real"}
"""Recipes of no paper."""
SITES = sorted((configs_folder() / "cluster").glob("*.toml"))


def name_of(path: Path) -> str:
    """`FOLDER/STEM`, as the tables of this folder name recipes."""
    return f"{path.parent.name}/{path.stem}"


def flat(recipe: Recipe) -> dict[str, object]:
    """Every value by its dotted key."""
    return {key: value(recipe, key) for key in keys_of(recipe.model_dump(mode="json"))}


@pytest.mark.parametrize("name", STATED)
def test_a_recipe_has_the_numbers_of_its_method(name: str) -> None:
    recipe = load(name)
    assert {key: value(recipe, key) for key in STATED[name]} == STATED[name]


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_changes_only_what_it_is_about(name: str) -> None:
    path = configs_folder() / f"{name}.toml"
    base = tomllib.loads(path.read_text())["base"]
    before = flat(load_recipe(path.parent / base).recipe)
    after = flat(load(name))
    changed = {key for key in before | after if before.get(key) != after.get(key)}
    assert {key: after[key] for key in changed - {"name"}} == ABLATIONS[name]


def test_every_recipe_is_in_one_of_the_tables() -> None:
    assert {name_of(path) for path in recipe_files()} == set(STATED) | set(ABLATIONS) | LABS


def test_names_are_unique() -> None:
    names = [load_recipe(path).recipe.name for path in recipe_files()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(("name", "counts"), ROLLOUTS.items(), ids=list(ROLLOUTS))
def test_responses_of_a_step_and_of_an_update(name: str, counts: tuple[int, int]) -> None:
    rollout = load(name).rollout
    step = rollout.prompts * rollout.group_size
    assert (step, step // rollout.updates) == counts


def test_steps_are_the_epochs_they_are_said_to_be() -> None:
    """Rows as published, less those that are held out, over the prompts of a step."""
    rows = 46_000 - 128
    paper, script = load("longrlvr/qwen2.5-7b-1m"), load("longrlvr/qwen2.5-7b-1m-released")
    assert paper.rollout.steps == -(-rows // 512)
    assert script.rollout.steps == -(-5 * rows // 32)
    assert load("eapo/qwen3-14b").rollout.steps == -(-4_664 // 64)
    trace = load("longtracerl/qwen3-4b").rollout
    assert trace.steps * trace.prompts / 2_815 == pytest.approx(1.14, abs=0.005)
    assert trace.steps * trace.prompts / (2_815 - 64) == pytest.approx(1.16, abs=0.005)


@pytest.mark.parametrize("path", recipe_files(), ids=name_of)
def test_prompt_and_response_fill_the_context(path: Path) -> None:
    recipe = load_recipe(path).recipe
    if recipe.backend == "slime":
        longest = recipe.data.max_prompt_tokens + recipe.rollout.max_response_tokens
        assert longest == recipe.rollout.context_tokens


@pytest.mark.parametrize("path", recipe_files(), ids=name_of)
def test_training_and_held_out_rows_of_one_set_do_not_overlap(path: Path) -> None:
    data = load_recipe(path).recipe.data
    if data.eval is not None and is_hub(data.train):
        train, held_out = parse_hub(data.train), parse_hub(data.eval)
        assert train.repository == held_out.repository
        rows = held_out.split.removeprefix("train[:").removesuffix("]")
        assert train.split == f"train[{rows}:]"
        assert int(rows) > 0


@pytest.mark.parametrize("path", recipe_files(), ids=name_of)
def test_the_host_takes_it_and_it_fits(path: Path, tmp_path: Path) -> None:
    recipe = load_recipe(path).recipe
    if recipe.backend != "slime":
        return
    assert recipe.model.facts in known_models()
    assert recipe.model.hub is not None
    assert recipe.model.hub.endswith(f"/{recipe.model.facts}")
    assert recipe.model.path == f"models/{recipe.model.facts}"
    plan = make_plan(recipe, shape_for(recipe))
    assert plan.verdict == "fits", plan.binding.sentence()
    groups = slime_arguments(recipe, tmp_path / "run")
    words = [word for group in groups.values() for word in group]
    batch = recipe.rollout.prompts * recipe.rollout.group_size // recipe.rollout.updates
    assert words[words.index("--global-batch-size") + 1] == str(batch)


@pytest.mark.parametrize("name", STATED)
def test_it_passes_check_offline(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGRL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    findings = preflight(load(name), tmp_path / "runs", offline=True)
    assert exit_code(findings) == 0, findings


@pytest.mark.parametrize("name", [name for name in STATED if name.startswith("longtracerl/")])
def test_the_papers_own_host_takes_it_too(name: str, tmp_path: Path) -> None:
    old = ["slime.version=v0.2.4", f"model.megatron_checkpoint={tmp_path}"]
    recipe = load(name, *old)
    assert make_plan(recipe, shape_for(recipe)).verdict == "fits"
    words = [word for group in slime_arguments(recipe, tmp_path).values() for word in group]
    assert words[words.index("--ref-load") + 1] == str(tmp_path)


@pytest.mark.parametrize("path", SITES, ids=lambda path: path.stem)
def test_a_site_says_only_what_the_machines_are(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = list(keys_of(tomllib.loads(path.read_text())))
    assert keys
    assert all(key.startswith("cluster.") for key in keys)
    monkeypatch.setenv("LONGRL_SITE", str(path))
    # A recipe's own number of nodes is part of its layout and wins over the site's.
    assert load("longtracerl/qwen3-4b").cluster.nodes == 4
    site = tomllib.loads(path.read_text())["cluster"]
    assert load("coem/qwen3.5-4b").cluster.gpu_memory_gib == site["gpu_memory_gib"]


@pytest.mark.parametrize("path", sorted(configs_folder().rglob("*.toml")), ids=name_of)
def test_a_file_is_short_and_opens_with_what_it_is(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert len(lines) <= (80 if path.name == "base.toml" else 60)
    assert max(map(len, lines)) <= 100
