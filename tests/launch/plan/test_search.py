"""Search and remedies: what they offer keeps all rules and fits."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from launch.plan.plan import at_context, make_plan
from launch.plan.remedy import remedies
from launch.plan.rules import broken_rules
from launch.plan.search import Candidate, search_layouts, smallest_change
from launch.plan.verdict import ORDER
from slime_ext.recipe.schema import Recipe
from tests.launch.plan.made import made, shape_of


def applied(recipe: Recipe, changes: list[str]) -> Recipe:
    """The recipe after `--set` arguments of whole numbers and words."""
    for change in changes:
        key, _, value = change.partition("=")
        section, name = key.split(".")
        parsed: Any = int(value) if value.isdigit() else {"true": True}.get(value, value.strip('"'))
        new = getattr(recipe, section).model_copy(update={name: parsed})
        recipe = recipe.model_copy(update={section: new})
    return recipe


@pytest.mark.parametrize("model", ["4b", "30b", "hybrid"])
@pytest.mark.parametrize("context", [131072, 163840])
def test_everything_found_keeps_the_rules_and_fits(model: str, context: int) -> None:
    asked = at_context(made(), context)
    shape = shape_of(model)
    found = search_layouts(asked, shape)
    assert found
    for one in found:
        again = applied(asked, one.changes(asked))
        assert broken_rules(again, shape) == []
        assert make_plan(again, shape).verdict in ("fits", "tight")
        assert one.layout.model_gpus * one.layout.dp == 32
        assert 0 <= one.idle < 1


def test_best_first() -> None:
    found = search_layouts(made(), shape_of("4b"))
    verdicts = [ORDER.index(one.plan.verdict) for one in found]
    assert verdicts == sorted(verdicts)
    fitting = [one for one in found if one.plan.verdict == "fits"]
    assert all(a.idle // 0.05 <= b.idle // 0.05 for a, b in pairwise(fitting))
    # The published layout is among them, and idles no less than the best.
    published = [one for one in found if (one.layout.tp, one.layout.pp, one.layout.cp) == (4, 2, 4)]
    assert len(published) == 1
    assert found[0].idle <= published[0].idle


def test_160k_without_context_parallel_does_not_fit_and_says_what_would() -> None:
    asked = made(parallel__cp=1)
    shape = shape_of("4b")
    plan = make_plan(asked, shape)
    assert plan.verdict == "does not fit"
    assert "logits and log-probs" in plan.binding.sentence()
    (remedy,) = remedies(asked, shape, plan)
    assert remedy.startswith("--set parallel.cp=2 ")
    change = smallest_change(asked, shape)
    assert isinstance(change, Candidate)
    assert change.changes(asked) == ["parallel.cp=2"]


@pytest.mark.parametrize(
    ("model", "changes", "argument"),
    [
        ("8b", {"performance__recompute": "none"}, 'performance.recompute="full"'),
        ("8b", {"performance__offload": False, "parallel__cp": 2}, "performance.offload=true"),
        ("30b", {"parallel__ep": 1}, "parallel.ep="),
        ("8b", {"cluster__nodes": 1, "parallel__tp": 8, "parallel__pp": 1, "parallel__cp": 1,
                "cluster__gpu_memory_gib": 40.0}, "cluster.nodes="),
        ("8b", {"engine__gpus": 1, "cluster__gpu_memory_gib": 44.0}, "engine."),
    ],
)  # fmt: skip
def test_a_remedy_fits_when_applied(model: str, changes: dict[str, Any], argument: str) -> None:
    asked, shape = made(**changes), shape_of(model)
    plan = make_plan(asked, shape)
    assert plan.verdict == "does not fit"
    offered = remedies(asked, shape, plan)
    assert any(argument in one for one in offered), offered
    for one in offered:
        settings = [part for part in one.partition("  (")[0].split("--set ") if part]
        assert make_plan(applied(asked, [s.strip() for s in settings]), shape).verdict != (
            "does not fit"
        )


def test_nothing_is_remedied_that_fits() -> None:
    plan = make_plan(made(), shape_of("4b"))
    assert remedies(made(), shape_of("4b"), plan) == []


def test_a_hopeless_context_says_so() -> None:
    asked = at_context(made(cluster__nodes=1, parallel__pp=1, parallel__cp=1, parallel__tp=8),
                       40_000_000)  # fmt: skip
    shape = shape_of("4b")
    (remedy,) = remedies(asked, shape, make_plan(asked, shape))
    assert "nothing up to cluster.nodes = 8 fits" in remedy
