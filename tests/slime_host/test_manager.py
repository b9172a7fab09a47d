"""slime's real RolloutManager as a Ray actor: two data sets evaluated, one rollout."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from slime_ext.metrics.records import read_rows
from slime_ext.rollout.runtime import load_runtime
from tests.slime_host.lab import lab_run, slime_args, without_fan_out

pytestmark = pytest.mark.skipif(
    without_fan_out(), reason="slime v0.2.4 divides by the number of GPUs, which is 0 here"
)


def test_the_manager_evaluates_and_rolls_out_with_our_hooks(
    ray: Any, runs: Path, engine: str, tmp_path: Path
) -> None:
    from slime.ray.placement_group import create_placement_groups, create_rollout_manager

    run = lab_run(runs, 'data.eval_sets={second="builtin:lab"}', name="manager")
    rows = len(load_runtime(run.recipe).rows["eval"])
    args = slime_args(
        run,
        engine,
        *("--debug-rollout-only", "--rollout-num-gpus", "0"),
        *("--save-debug-rollout-data", str(tmp_path / "{rollout_id}.pt")),
    )
    manager, _ = create_rollout_manager(args, create_placement_groups(args)["rollout"])
    ray.get(manager.eval.remote(rollout_id=0))
    ray.get(manager.generate.remote(0))
    ray.get(manager.save.remote(0))
    ray.get(manager.dispose.remote())

    evaluated = {row["dataset"]: row for row in read_rows(run.path / "metrics" / "eval.jsonl")}
    assert set(evaluated) == {"eval", "second"}
    assert all(row["samples"] == rows for row in evaluated.values())
    (rollout,) = read_rows(run.path / "metrics" / "rollout.jsonl")
    assert rollout["samples"] == 12
    samples = torch.load(tmp_path / "0.pt", weights_only=False)["samples"]
    assert all(math.isfinite(sample["reward"]) for sample in samples)
    assert all(len(s["rollout_log_probs"]) == s["response_length"] for s in samples)
    dumped = torch.load(tmp_path / "eval_0.pt", weights_only=False)["samples"]
    assert len(dumped) == 2 * rows
    state = json.loads((run.checkpoints / "rollout" / "longrl_data_source_0.json").read_text())
    assert state["next_group"] == 3
