"""slime's own train.py for three steps with the embedded trainer as its actor: responses, rewards,
advantages and losses equal those of the embedded loop."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import Any

import pytest

from slime_ext.embedded.engine.process import EngineProcess
from slime_ext.metrics.records import last_rows, read_rollouts
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.rollout.runtime import load_runtime
from tests.slime_host.lab import lab_run, slime_args, without_fan_out

pytestmark = pytest.mark.skipif(
    without_fan_out(), reason="slime v0.2.4 has no way to replace its actor"
)
STEPS = 3


def train_with_slime(run: RunFolder, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.slime_host.embedded_actor import EmbeddedActor

    args = slime_args(
        run,
        url,
        *("--rollout-num-gpus", "0", "--actor-num-nodes", "1", "--actor-num-gpus-per-node", "1"),
    )
    script = importlib.import_module("train")
    create = functools.partial(script.create_training_models, actor_cls=EmbeddedActor)
    monkeypatch.setattr(script, "create_training_models", create)
    script.train(args)


def train_embedded(run: RunFolder) -> None:
    from slime_ext.embedded.loop import Loop
    from slime_ext.embedded.stopping import StopRequest

    assert Loop(load_runtime(run.recipe).recipe, run, 1).run(StopRequest()).finished


def test_three_steps_of_slime_equal_three_of_the_embedded_loop(
    ray: Any, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, twin = (lab_run(runs, name=name) for name in ("by-slime", "embedded"))
    model = Path(load_runtime(run.recipe).recipe.model.path)
    with EngineProcess(model, batch=32, log=tmp_path / "engine.log") as process:
        train_with_slime(run, process.url, monkeypatch)
    train_embedded(twin)
    for step in range(STEPS):
        ours, theirs = (
            list(read_rollouts(one.path / "rollouts" / f"step_{step}.jsonl.zst"))
            for one in (run, twin)
        )
        assert len(ours) == len(theirs) == 12
        for key in ("index", "id", "status", "response"):
            assert [row[key] for row in ours] == [row[key] for row in theirs]
        for key in ("reward", "advantage"):
            values = [row[key] for row in theirs]
            assert [row[key] for row in ours] == pytest.approx(values, abs=1e-6)
    ours, theirs = (last_rows(one.path / "metrics" / "train.jsonl") for one in (run, twin))
    assert sorted(ours) == sorted(theirs)
    for step, row in ours.items():
        for key in ("loss", "grad_norm", "tokens", "lr"):
            assert row[key] == pytest.approx(theirs[step][key], rel=1e-4, abs=1e-6)
    assert any(row["grad_norm"] > 0 for row in ours.values())
