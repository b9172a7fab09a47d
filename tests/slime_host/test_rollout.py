"""One training rollout through slime's own `generate_rollout` and manager, our hooks in each place;
its train data equals what the embedded backend builds from the same responses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slime_ext.metrics.records import read_rollouts, read_rows
from slime_ext.metrics.run_folder import RunFolder
from tests.slime_host.lab import lab_run, slime_args, without_fan_out
from tests.slime_host.manager import (
    assert_same_training,
    bare_manager,
    embedded_rollout,
    one_rollout,
)


def test_slime_and_the_embedded_loop_train_on_the_same(
    runs: Path, engine: str, logged: list[dict[str, Any]]
) -> None:
    run = lab_run(runs, name="plain")
    data = assert_same_training(run, lab_run(runs, name="twin"), engine)
    assert len(data["rewards"]) == 12
    assert any(data["rewards"]), "a step that teaches nothing compares nothing"
    (ours, theirs) = (set(call) - {"rollout/step"} for call in logged[:2])
    assert "rollout/reward/total" in ours
    assert "rollout/response_len/mean" in theirs
    assert ours.isdisjoint(theirs)
    rows = list(read_rollouts(run.path / "rollouts" / "step_0.jsonl.zst"))
    assert [row["index"] for row in rows] == list(range(12))
    assert [row["step"] for row in read_rows(run.path / "metrics" / "rollout.jsonl")] == [0]


@pytest.fixture(scope="module")
def sglang_router(run: RunFolder, runs: Path) -> Iterator[str]:
    """Address of the real sglang-router before one real SGLang on CPU."""
    from slime_ext.embedded.sglang.process import SglangProcess, sglang_installed, sglang_venv
    from slime_ext.rollout.runtime import load_runtime
    from tests.slime_host.router import router

    if not sglang_installed():
        pytest.skip(f"no SGLang environment in {sglang_venv()}; make sglang makes one")
    model = Path(load_runtime(run.recipe).recipe.model.path)
    process = SglangProcess(model, batch=32, log=runs / "sglang.log")
    try:
        with router([process.start()], runs / "router.log") as url:
            yield url
    finally:
        process.stop()


@pytest.mark.skipif(without_fan_out(), reason="slime v0.2.4 cannot train on fan-out")
def test_each_sample_of_a_fan_out_is_taught_what_its_rollout_is(runs: Path, engine: str) -> None:
    kind = 'rollout.kind="tests.slime_host.odd_rollouts:UNEVEN"'
    _, data = one_rollout(bare_manager(slime_args(lab_run(runs, kind, name="fan-out"), engine)))
    step = embedded_rollout(lab_run(runs, name="single"), engine)
    of = data["sample_indices"]
    assert of == [index for index in range(12) for _ in range(1 + index % 2)]
    assert data["rollout_ids"] == of
    assert data["tokens"] == [step.samples[index].tokens for index in of]
    assert data["rewards"] == pytest.approx([step.advantages[index] for index in of])
    assert data["raw_reward"] == pytest.approx([step.raw[index] for index in of])
    lengths = [step.samples[index].response_length * (1 + index % 2) for index in of]
    assert data["rollout_mask_sums"] == lengths
    assert any(data["rewards"])


def test_the_same_holds_behind_the_real_router_and_sglang(runs: Path, sglang_router: str) -> None:
    kind = 'rollout.kind="tests.slime_host.odd_rollouts:REPLAYED"'
    many = (kind, "rollout.prompts=6", "rollout.group_size=8")
    run, twin = (lab_run(runs, *many, name=name) for name in ("sglang", "sglang-twin"))
    data = assert_same_training(run, twin, sglang_router)
    assert len(data["rewards"]) == 48
    (row,) = read_rows(run.path / "metrics" / "rollout.jsonl")
    assert (row["engine/abort_refused"], row["engine/lost_calls"]) == (0, 0)
