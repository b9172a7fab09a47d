"""Space for checkpoints: 14 bytes a parameter and save on the cluster."""

from __future__ import annotations

import shutil
from collections import namedtuple

import pytest

from launch.preflight.disk import check_disk
from slime_ext.weights.count import count_parameters
from tests.launch.preflight.conftest import MakeContext, named

Usage = namedtuple("Usage", "total used free")


@pytest.mark.parametrize(
    ("saves", "status"), [(0.9, "fail"), (2.9, "warn"), (3.2, "pass")], ids=str
)
def test_one_save_and_all_that_are_kept(
    make: MakeContext, monkeypatch: pytest.MonkeyPatch, saves: float, status: str
) -> None:
    context = make(checkpoint={"keep": 2}, rollout={"steps": 200})
    save = 14 * count_parameters(context.shape).total
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, int(saves * save)))
    assert named(check_disk(context.recipe, context), "space").status == status


def test_the_4b_takes_56_gb_a_save_and_a_laptop_is_not_its_disk(make: MakeContext) -> None:
    context = make(offline=True, model={"path": "/no/model", "facts": "Qwen3-4B-Thinking-2507"})
    finding = named(check_disk(context.recipe, context), "space")
    assert finding.status == "skip"
    assert "a save takes 56 GB" in finding.message


def test_the_embedded_backend_keeps_fp32(
    make: MakeContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = make(backend="embedded", checkpoint={"keep": 1}, offline=True)
    parameters = count_parameters(context.shape).total
    needed = (2 * 12 + 4) * parameters
    for free, status in ((needed - 1, "warn"), (needed, "pass")):
        monkeypatch.setattr(shutil, "disk_usage", lambda path, free=free: Usage(0, 0, free))
        assert named(check_disk(context.recipe, context), "space").status == status
