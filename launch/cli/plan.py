"""`longrl plan`: what a recipe takes, and whether it fits, before a GPU is taken."""

from __future__ import annotations

from pathlib import Path

import orjson
from rich.console import Console

from launch.cli.options import Overrides, RecipePath
from launch.models.facts import shape_for
from launch.plan.measure.command import measure_stage
from launch.plan.measure.planned import StageName
from launch.plan.measure.report import show_measurement, to_json
from launch.plan.notes import notes
from launch.plan.plan import Plan, PlanError, at_context, make_plan
from launch.plan.remedy import remedies
from launch.plan.render import show_plan, show_search
from launch.plan.search import search_layouts
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.count import count_parameters
from slime_ext.weights.shape import ModelShape

EXIT_CODE = {"fits": 0, "tight": 1, "does not fit": 2}


def plan(
    recipe: RecipePath,
    overrides: Overrides = (),
    context: int | None = None,
    run: Path | None = None,
    search: bool = False,
    write: Path | None = None,
    json: bool = False,
    measure: bool = False,
    stage: StageName | None = None,
    tokens: int | None = None,
) -> int:
    """Plan memory, disk and time of a recipe, and say what would fit where it does not.

    Exit code 0 where it fits, 1 where it is tight, 2 where it does not fit.

    Args:
        recipe: The recipe.
        overrides: Changes of single keys.
        context: Plan for this many tokens of prompt and response instead of the recipe's.
        run: Run folder whose first five steps correct the hours.
        search: List the layouts of the recipe's GPUs that fit, best first.
        write: Run folder that gets plan.json.
        json: Print JSON.
        measure: Train one GPU's share of a stage for a step here; print planned beside measured.
        stage: The stage to measure; the one with the higher peak unless stated.
        tokens: Tokens on the GPU to measure at; the recipe's on a GPU, 2,048 on CPU unless stated.
    """
    loaded = load_recipe(recipe, overrides).recipe
    if context is not None:
        loaded = at_context(loaded, context)
    shape = shape_for(loaded)
    if loaded.backend == "embedded":
        return _embedded(loaded, shape, json)
    if not measure and (stage is not None or tokens is not None):
        raise PlanError("--stage and --tokens belong to --measure; add it")
    if measure:
        return _measure(loaded, shape, stage, tokens, json)
    if search:
        return _search(loaded, shape, json)
    made = make_plan(loaded, shape, run)
    if write is not None:
        write.mkdir(parents=True, exist_ok=True)
        RunFolder(write).write_json(write / "plan.json", made.to_json())
    said, changes = notes(loaded, shape, made), remedies(loaded, shape, made)
    if json:
        _print_json(made.to_json() | {"notes": said, "remedies": changes})
    else:
        show_plan(Console(), made, said, changes)
    return _exit_code(made)


def _exit_code(made: Plan) -> int:
    return EXIT_CODE[made.verdict]


def _embedded(recipe: Recipe, shape: ModelShape, json: bool) -> int:
    total = count_parameters(shape).total
    if json:
        _print_json({"name": recipe.name, "backend": recipe.backend, "parameters": total})
        return 0
    print(
        f"{recipe.name} trains on this machine (backend = embedded): {total:,} parameters, about "
        f"{18 * total / 1e6:,.0f} MB of weights, gradients and optimiser state. The plan is for "
        "GPUs; add --set backend=slime to see one"
    )
    return 0


def _search(recipe: Recipe, shape: ModelShape, json: bool) -> int:
    found = search_layouts(recipe, shape)
    if json:
        _print_json([one.plan.to_json() | {"set": one.changes(recipe)} for one in found])
    else:
        show_search(Console(), found, recipe.rollout.context_tokens)
        if found:
            changes = found[0].changes(recipe)
            best = " ".join(f"--set {change}" for change in changes) or "the recipe as it is"
            print(f"best: {best}")
        else:
            print("no layout of these GPUs fits; raise cluster.nodes or lower --context")
    return 0 if found else 2


def _measure(
    recipe: Recipe, shape: ModelShape, stage: StageName | None, tokens: int | None, json: bool
) -> int:
    planned, measured, device = measure_stage(recipe, shape, stage, tokens)
    if json:
        _print_json(to_json(planned, measured, device))
    else:
        show_measurement(Console(), recipe.name, planned, measured, device)
    return 2 if measured.out_of_memory else 0


def _print_json(value: object) -> None:
    print(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
