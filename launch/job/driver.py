"""The part of a job that starts the training program once Ray is whole, and judges how it ended.

One design choice: the exit code is the only word between this process and the job script: 0 is
done, 75 and 76 are saved on request, 70 is stuck, anything else is the program's own.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from pathlib import Path

from launch.job.disk import full_disk
from launch.job.program import job_variables, training_command
from launch.job.pruner import Pruner
from launch.job.ready import ray_addresses, ray_nodes, wait_ready
from launch.job.resume import NothingLeftError, prepare_start
from launch.job.submission import RayJob
from launch.job.watch import Watch
from slime_ext.errors import ExplainedError
from slime_ext.metrics.records import ATTEMPT_VARIABLE, Records
from slime_ext.metrics.run_folder import RunFolder, start_attempt
from slime_ext.metrics.stop_flag import STOPPED, StopFlag, exit_code
from slime_ext.metrics.summary import summarise
from slime_ext.metrics.trainer_rows import TrainerRows
from slime_ext.recipe.load import load_recipe

CHAINED = "LONGRL_CHAINED"
"""Set where an earlier job may have done everything, which is then no error."""
DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def drive(folder: RunFolder, port: int, ready: Path, until: int | None = None) -> int:
    """Wait for the nodes, start the program, follow it; returns the exit code for the job.

    `until` ends the run after that many rollouts.
    """
    limit = () if until is None else (f"rollout.steps={until}",)
    recipe = load_recipe(folder.recipe, limit).recipe
    dashboard = f"http://127.0.0.1:{port + 1}"
    nodes = os.environ["LONGRL_NODES"].split()
    expected = dict.fromkeys(nodes, recipe.cluster.gpus_per_node)
    expected[nodes[0]] = recipe.cluster.first_node_gpus
    took = wait_ready(expected, recipe.cluster.ready_timeout_s, lambda: ray_nodes(dashboard))
    print(f"Ray is ready after {took:.0f} s: {len(nodes)} nodes, {sum(expected.values())} GPUs")
    ready.touch()
    start = prepare_start(recipe, folder)
    print(start.describe())
    stop = StopFlag(folder.path)
    if stop.asked():
        print("asked to stop before the program began")
        return STOPPED
    attempt = start_attempt(folder)
    variables = job_variables(recipe, folder, attempt, ray_addresses(dashboard))
    job = RayJob(dashboard, training_command(recipe, folder, attempt), variables)
    print(f"attempt {attempt}, Ray job {job.id}")
    watch, pruner = Watch(recipe, folder, attempt), Pruner(folder, attempt)
    trainer = TrainerRows(folder, recipe.rollout.updates, attempt)

    def look() -> int | None:
        pruner()
        trainer.look()
        return watch()

    os.environ[ATTEMPT_VARIABLE] = str(attempt)
    records = Records(folder.path)
    records.event("start", step=start.rollout)
    code = job.follow(sys.stdout, look)
    trainer.finish()
    if code == 0:
        pruner.finish()
        records.event("finished", step=recipe.rollout.steps)
        if until is None:
            folder.write_json(folder.summary, summarise(recipe, folder))
        return 0
    if (saved := stop.saved_step()) is not None:
        records.event("stopped", step=saved + 1, reason=stop.asked())
        print(f"saved up to rollout {saved} on request of {stop.asked()}")
        return exit_code(stop.asked())
    if code and (full := full_disk(folder.checkpoints)) is not None:
        print(f"longrl: {full}")
    return code


def main() -> int:
    """Entry point of the script's driver step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--port", type=int, required=True, help="Ray's; its dashboard is one above")
    parser.add_argument("--ready", type=Path, required=True, help="made once all nodes are there")
    parser.add_argument("--until", type=int, help="rollouts to end after, instead of the recipe's")
    asked = parser.parse_args()
    try:
        return drive(RunFolder(asked.run), asked.port, asked.ready, asked.until)
    except NothingLeftError as error:
        print(f"longrl: {error}", file=sys.stderr)
        return 0 if CHAINED in os.environ else 2
    except ExplainedError as error:
        print(f"longrl: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.errno not in DISK:
            raise
        print(f"longrl: {error}; free space, or lower checkpoint.keep", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
