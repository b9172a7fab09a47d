"""Planned against measured, as text and JSON; without torch there is a remedy."""

from __future__ import annotations

import importlib.util
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from launch.cli.plan import plan
from launch.plan.measure import command
from launch.plan.measure.planned import Planned, planned
from launch.plan.measure.report import rows, show_measurement, to_json
from launch.plan.measure.run import Device, Measured, find_device
from launch.plan.measure.share import MeasureError
from launch.plan.plan import PlanError
from tests.launch.plan.made import made, shape_of
from tests.launch.recipes import DENSE

CPU = Device("cpu", "CPU, 2 cores", 2**34)
GPU = Device("cuda", "a GPU", None)


def plan_of_last(tokens: int | None = 2048) -> Planned:
    return planned(made(), shape_of("4b"), "last", tokens, 2 if tokens else None)


def printed(wanted: Planned, measured: Measured, device: Device) -> str:
    text = io.StringIO()
    show_measurement(Console(file=text, width=140), "recipe", wanted, measured, device)
    return text.getvalue()


def test_header_names_device_dtype_and_both_lengths() -> None:
    text = printed(plan_of_last(), Measured("CPU, 2 cores", {"weights": 2**20}, False), CPU)
    assert "CPU, 2 cores, bf16, 2,048 tokens on the GPU (8,192 in the sequence)" in text
    assert "the recipe has 40,960 and 18" in text
    assert "nothing here was run on a GPU" in text


def test_a_gpu_at_full_length_makes_no_such_excuse() -> None:
    text = printed(plan_of_last(None), Measured("H800", {"weights": 2**20}, False), GPU)
    assert "measured on H800, bf16, 40,960 tokens" in text
    assert "the recipe has" not in text
    assert "nothing here was run" not in text


def test_each_row_has_the_ratio_of_measured_to_planned() -> None:
    wanted = plan_of_last()
    weights = int(wanted.terms["weights"])
    found = {
        row["term"]: row
        for row in rows(
            wanted, Measured("H800", {"weights": 2 * weights, "optimiser_step": 5}, False)
        )
    }
    assert found["weights"]["ratio"] == pytest.approx(2.0)
    assert found["optimiser_step"] == {
        "term": "optimiser_step",
        "recipe": None,
        "planned": None,
        "measured": 5,
        "ratio": None,
    }
    assert found["peak"]["measured"] is None
    assert to_json(wanted, Measured("H800", {}, False), CPU)["share"]["vocab"] == 38016


def test_running_out_of_memory_says_where() -> None:
    text = printed(plan_of_last(), Measured("H800", {"weights": 1, "gradients": 2}, True), GPU)
    assert "memory ran out after 'gradients, fp32'; write fewer --tokens" in text


def test_differences_depend_on_the_share() -> None:
    experts = planned(made(parallel__ep=16), shape_of("30b"), "first", 2048, 2)
    text = printed(experts, Measured("H800", {}, False), CPU)
    assert "routing is balanced" in text
    assert "upper bound" not in text


def test_the_command_prints_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "dense.toml"
    recipe.write_text(DENSE)
    measured = Measured("CPU", {"weights": 2**20}, False)
    monkeypatch.setattr(command, "find_device", lambda: CPU)
    monkeypatch.setattr(command, "measure", lambda share, device: measured)
    assert plan(recipe, measure=True, stage="first", tokens=4096, json=True) == 0
    printed_json = json.loads(capsys.readouterr().out)
    assert (printed_json["stage"], printed_json["share"]["tokens"]) == (0, 4096)
    monkeypatch.setattr(command, "measure", lambda *_: replace(measured, out_of_memory=True))
    assert plan(recipe, measure=True) == 2
    assert "memory ran out after 'weights, bf16'" in capsys.readouterr().out
    with pytest.raises(PlanError, match="belong to --measure"):
        plan(recipe, tokens=4096)


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MeasureError, match=r"install longrl\[embedded\]"):
        find_device()


def test_a_share_over_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_device", lambda: Device("cpu", "CPU", 2**30))
    with pytest.raises(MeasureError, match=r"this machine has 1\.0 GiB free; write fewer --tokens"):
        command.measure_stage(made(), shape_of("4b"), None, 8192)
