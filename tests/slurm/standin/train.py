"""A stand-in for the host's train.py on a machine without GPUs: real Ray, real files, no model.

It asks Ray for one placement group of all GPUs, as the host does, runs one actor a node, writes
checkpoints and records of the real form, and can be told to misbehave by `behave.json` beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from slime_ext.metrics.records import ATTEMPT_VARIABLE, Records
from slime_ext.metrics.stop_flag import StopFlag

MARKER = "latest_checkpointed_iteration.txt"


@ray.remote(num_gpus=0, num_cpus=0)
class Rank:
    """One training process."""

    def node(self) -> str:
        return ray.get_runtime_context().get_node_id()

    def step(self, seconds: float) -> int:
        time.sleep(seconds)
        return os.getpid()


def save(folder: Path, iteration: int) -> None:
    """A checkpoint that is complete by its files."""
    place = folder / f"iter_{iteration:07d}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "__0_0.distcp").write_bytes(b"weights")
    for name in ("common.pt", "metadata.json", ".metadata"):
        (place / name).write_bytes(b"__0_0.distcp")
    (folder / MARKER).write_text(str(iteration))


def main() -> int:
    parser = argparse.ArgumentParser()
    for flag, kind in (("--save", Path), ("--num-rollout", int), ("--save-interval", int)):
        parser.add_argument(flag, type=kind, required=True)
    parser.add_argument("--actor-num-nodes", type=int, required=True)
    parser.add_argument("--actor-num-gpus-per-node", type=int, required=True)
    asked, _ = parser.parse_known_args()
    behave = json.loads((Path(__file__).parent / "behave.json").read_text())
    run = Path(os.environ["LONGRL_RUN"])
    attempt = int(os.environ[ATTEMPT_VARIABLE])
    gpus = asked.actor_num_nodes * asked.actor_num_gpus_per_node
    ray.init(address="auto", log_to_driver=False)
    group = placement_group([{"GPU": 1}] * gpus, strategy="PACK")
    ray.get(group.ready(), timeout=60)
    spread = [
        Rank.options(
            scheduling_strategy=PlacementGroupSchedulingStrategy(
                group, placement_group_bundle_index=index * asked.actor_num_gpus_per_node
            )
        ).remote()
        for index in range(asked.actor_num_nodes)
    ]
    nodes = set(ray.get([rank.node.remote() for rank in spread]))
    if name := behave.get("print_variable"):
        print(f"{name} has {len(os.environ[name])} characters", flush=True)
    print(f"{gpus} GPUs on {len(nodes)} nodes", flush=True)
    marker = asked.save / MARKER
    first = int(marker.read_text()) + 1 if marker.is_file() else 0
    records, stop = Records(run), StopFlag(run)
    for step in range(first, asked.num_rollout):
        if stop.asked():
            save(asked.save, step - 1)
            stop.answer(step - 1)
            print(f"stopped before step {step}", flush=True)
            return 1
        if [attempt, step] == behave.get("crash"):
            print("crashing as told", flush=True)
            sys.stdout.flush()
            os._exit(behave["code"])
        if [attempt, step] == behave.get("hang"):
            time.sleep(3600)
        ray.get([rank.step.remote(behave["step_s"]) for rank in spread], timeout=60)
        records.write("rollout", step, {"reward/total": step / 10})
        if (step + 1) % asked.save_interval == 0 or step + 1 == asked.num_rollout:
            save(asked.save, step)
    print("trained", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
