"""Deadlines, and which errors become findings."""

from __future__ import annotations

import errno
import threading

import pytest

from launch.preflight.context import Context
from launch.preflight.finding import Finding, exit_code
from launch.preflight.runner import Check, run_checks
from slime_ext.errors import ExplainedError
from slime_ext.recipe.schema import Recipe
from tests.launch.preflight.conftest import MakeContext


def passing(recipe: Recipe, context: Context) -> list[Finding]:
    return [Finding("a", recipe.name, "pass", "well")]


def explained(recipe: Recipe, context: Context) -> list[Finding]:
    raise ExplainedError("tp = 3 does not divide 8 heads; write tp = 4")


def refused(recipe: Recipe, context: Context) -> list[Finding]:
    raise OSError(errno.EACCES, "Permission denied", "/data")


def faulty(recipe: Recipe, context: Context) -> list[Finding]:
    raise KeyError("a fault of ours")


def test_known_errors_are_findings_and_the_rest_goes_on(make: MakeContext) -> None:
    context = make()
    checks = [Check(f.__name__, f, 30.0) for f in (explained, refused, passing)]
    findings = run_checks(checks, context.recipe, context)
    assert [(one.area, one.status) for one in findings] == [
        ("explained", "fail"),
        ("refused", "fail"),
        ("a", "pass"),
    ]
    assert "write tp = 4" in findings[0].message
    assert "/data" in findings[1].message


def test_an_error_that_several_areas_meet_is_told_once(make: MakeContext) -> None:
    context = make()
    checks = [Check("model", explained, 30.0), Check("disk", explained, 30.0)]
    first, second = run_checks(checks, context.recipe, context)
    assert (first.status, second.status) == ("fail", "skip")
    assert second.message.endswith("model")


def test_what_needs_the_models_size_waits_for_it(make: MakeContext) -> None:
    check = Check("disk", explained, 30.0, needs_shape=True)
    unknown = make(model={"path": "/no/model"})
    assert [one.status for one in run_checks([check], unknown.recipe, unknown)] == ["skip"]
    for model in ({}, {"path": "/no/model", "facts": "Qwen3-14B"}, {"path": "builtin:lab-hs"}):
        known = make(model=model)
        assert [one.status for one in run_checks([check], known.recipe, known)] == ["fail"]


def test_a_fault_of_ours_keeps_its_traceback(make: MakeContext) -> None:
    context = make()
    with pytest.raises(KeyError, match="a fault of ours"):
        run_checks([Check("faulty", faulty, 30.0)], context.recipe, context)


def test_a_check_that_hangs_costs_its_deadline_only(make: MakeContext) -> None:
    context, release = make(), threading.Event()

    def hangs(recipe: Recipe, context: Context) -> list[Finding]:
        release.wait(60)
        return []

    checks = [Check("slow", hangs, 0.05), Check("next", passing, 30.0)]
    findings = run_checks(checks, context.recipe, context)
    release.set()
    assert [(one.area, one.status) for one in findings] == [("slow", "fail"), ("a", "pass")]
    assert "0.05 s" in findings[0].message


def test_areas_of_the_cluster_are_left_out_elsewhere(make: MakeContext) -> None:
    checks = [Check("cluster", explained, 30.0, cluster_only=True), Check("all", passing, 30.0)]
    for backend, statuses in (("slime", ["fail", "pass"]), ("embedded", ["pass"])):
        context = make(backend=backend)
        findings = run_checks(checks, context.recipe, context)
        assert [one.status for one in findings] == statuses


@pytest.mark.parametrize(
    ("statuses", "code"),
    [([], 0), (["pass", "skip"], 0), (["pass", "warn", "skip"], 1), (["warn", "fail", "pass"], 2)],
)
def test_the_worst_finding_is_the_exit_code(statuses: list, code: int) -> None:
    assert exit_code(Finding("a", "b", status, "") for status in statuses) == code
