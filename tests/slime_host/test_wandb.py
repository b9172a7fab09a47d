"""slime's own W&B calls with the variables of a run: one run over restarts, no row lost, no key."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from launch.slurm.environment import attempt_variables, environment
from slime_ext.metrics.wandb_run import wandb_run_id
from slime_ext.recipe.schema import Recipe
from tests.fakes.wandb_server import KEY, fake_wandb
from tests.slime_host.test_arguments import parsed, recipe, version

__all__ = ["recipe", "version"]
PLANTED = "planted-judge-key"
PROCESS = """
import pickle, sys
from pathlib import Path
import wandb
from slime_ext.host.features import logging_module
from slime_ext.host.loggers import log
args = pickle.loads(Path(sys.argv[1]).read_bytes())
args.use_tensorboard = False
logging_module().init_tracking(args, primary=sys.argv[2] == "primary")
for step in range(int(sys.argv[3]), int(sys.argv[4])):
    log(args, {"rollout/reward/total": step / 10}, step)
    log(args, {f"eval/set/by_{sys.argv[2]}": step / 10}, step, axis="eval/step")
print("run", wandb.run.id)
wandb.finish()
"""


@pytest.mark.timeout(900)
def test_restarts_are_one_run_in_which_no_row_is_lost_and_no_key_is_shown(
    recipe: Recipe, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with fake_wandb() as server:
        track = recipe.track.model_copy(update={"wandb": "online", "host": server.url})
        asked = recipe.model_copy(update={"track": track})
        monkeypatch.setenv("WANDB_API_KEY", KEY)
        monkeypatch.setenv("JUDGE_KEY", PLANTED)
        args, _ = parsed(asked, run)
        for attempt, steps in ((1, ("0", "3")), (2, ("2", "5"))):
            shown = {one.name: one.value for one in environment(asked, run)}
            variables = shown | attempt_variables(asked, run, attempt)
            del variables["PYTHONPATH"]
            for role in ("primary", "secondary"):
                args.wandb_run_id = variables["WANDB_RUN_ID"]
                (tmp_path / "args").write_bytes(pickle.dumps(args))
                done = subprocess.run(
                    [sys.executable, "-c", PROCESS, str(tmp_path / "args"), role, *steps],
                    env={**os.environ, **variables},
                    capture_output=True,
                    text=True,
                    timeout=240,
                    check=False,
                )
                assert f"run {wandb_run_id(run)}" in done.stdout, done.stderr
        rows = server.history(wandb_run_id(run))
        assert list(server.rows) == [wandb_run_id(run)]
        for role in ("primary", "secondary"):
            logged = [row["eval/step"] for row in rows if f"eval/set/by_{role}" in row]
            assert logged == [0, 1, 2, 2, 3, 4]
        assert [r["rollout/step"] for r in rows if "rollout/reward/total" in r] == [
            *(0, 1, 2) * 2,
            *(2, 3, 4) * 2,
        ]
        assert [row["_step"] for row in rows] == list(range(24))
        assert KEY.encode() not in server.raw
        assert PLANTED.encode() not in server.raw
        assert b"rollout_batch_size" in server.raw
