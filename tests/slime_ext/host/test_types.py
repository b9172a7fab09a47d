"""The host's types have the shape of slime v0.3.1; where slime is importable they are its own."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from slime_ext.host import standins, types

FACTS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "contracts" / "slime_v0.3.1.json").read_text()
)


def default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


@pytest.mark.parametrize("module", [standins, types], ids=["stand-ins", "host"])
def test_sample_has_the_fields_and_defaults_of_slime(module: Any) -> None:
    fields = {f.name: default(f) for f in dataclasses.fields(module.Sample) if f.name != "status"}
    assert {name: fields.get(name, "absent") for name in FACTS["sample_defaults"]} == FACTS[
        "sample_defaults"
    ]
    assert {s.name: s.value for s in module.Sample.Status} == FACTS["sample_status"]
    assert module.Sample().status is module.Sample.Status.PENDING


def test_the_stand_in_has_no_field_that_slime_lacks() -> None:
    names = {f.name for f in dataclasses.fields(standins.Sample)} - {"status"}
    assert names == set(FACTS["sample_defaults"])


@pytest.mark.parametrize("module", [standins, types], ids=["stand-ins", "host"])
def test_outputs_have_the_defaults_of_slime(module: Any) -> None:
    for cls, key in (
        (module.RolloutFnTrainOutput, "train_output"),
        (module.RolloutFnEvalOutput, "eval_output"),
        (module.DynamicFilterOutput, "filter_output"),
    ):
        defaults = {f.name: default(f) for f in dataclasses.fields(cls)}
        assert {name: defaults[name] for name in FACTS[key]} == FACTS[key]


def test_a_data_source_must_offer_what_slime_calls() -> None:
    assert sorted(types.DataSource.__abstractmethods__) == FACTS["data_source_methods"]


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("raise ImportError('libcudart.so.12: cannot open shared object file')", "libcudart"),
        ("import a_package_that_is_absent", "a_package_that_is_absent"),
        (None, "slime.rollout"),
    ],
    ids=["a broken library", "a missing requirement", "another package of that name"],
)
def test_a_slime_that_cannot_be_imported_is_no_reason_for_stand_ins(
    broken: str | None, says: str, tmp_path: Path
) -> None:
    (tmp_path / "slime").mkdir()
    (tmp_path / "slime" / "__init__.py").touch()
    if broken is not None:
        (tmp_path / "slime" / "rollout").mkdir()
        (tmp_path / "slime" / "rollout" / "__init__.py").write_text(broken)
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", "import slime_ext.host.types"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(root)])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert says in done.stderr.splitlines()[-1]
