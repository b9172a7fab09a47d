"""A stand-in for the host's train.py on a machine without GPUs: real Ray, real files, no model.

It asks Ray for one placement group of all GPUs, as the host does, runs one actor a node, writes
checkpoints and records of the real form, and can be told to misbehave by `behave.json` beside it.
What it learns is one number that depends on all steps before, so that a wrong restart shows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import ray
import torch
import torch.distributed.checkpoint as dcp
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from torch.utils.tensorboard import SummaryWriter

from slime_ext.metrics.alarms.alarms import Alarms
from slime_ext.metrics.records import ATTEMPT_VARIABLE, Records
from slime_ext.metrics.stop_flag import StopFlag
from slime_ext.recipe.load import load_recipe
from slime_ext.rollout.positions import Positions

MARKER = "latest_checkpointed_iteration.txt"


@ray.remote(num_gpus=0, num_cpus=0)
class Rank:
    """One training process."""

    def node(self) -> str:
        return ray.get_runtime_context().get_node_id()

    def step(self, seconds: float) -> int:
        time.sleep(seconds)
        return os.getpid()

    def wait_for_the_others(self) -> None:
        """What a rank does inside a collective that never ends."""
        time.sleep(3600)


def learn(value: float, step: int) -> float:
    """The number after one more step."""
    return 0.9 * value + step


def save(folder: Path, iteration: int, value: float, moments: int = 64) -> None:
    """A checkpoint as Megatron writes it, with `moments` numbers of optimiser state."""
    place = folder / f"iter_{iteration:07d}"
    state = {
        "weight": torch.tensor([value], dtype=torch.float64),
        "optimizer.state.exp_avg.weight": torch.zeros(moments),
    }
    dcp.save(state, storage_writer=dcp.FileSystemWriter(place), no_dist=True)
    torch.save({"iteration": iteration}, place / "common.pt")
    (place / "metadata.json").write_text("{}")
    (folder / MARKER).write_text(str(iteration))


def load(folder: Path) -> tuple[int, float]:
    """The first step to do, and the number learnt before it."""
    marker = folder / MARKER
    if not marker.is_file():
        return 0, 0.0
    iteration = int(marker.read_text())
    state = {"weight": torch.zeros(1, dtype=torch.float64)}
    place = folder / f"iter_{iteration:07d}"
    dcp.load(state, storage_reader=dcp.FileSystemReader(place), no_dist=True)
    return iteration + 1, float(state["weight"])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for flag, kind in (("--save", Path), ("--num-rollout", int), ("--save-interval", int)):
        parser.add_argument(flag, type=kind, required=True)
    parser.add_argument("--actor-num-nodes", type=int, required=True)
    parser.add_argument("--actor-num-gpus-per-node", type=int, required=True)
    return parser.parse_known_args()[0]


def start_ranks(asked: argparse.Namespace) -> list[Any]:
    """One actor on each node, inside a placement group of all GPUs."""
    gpus = asked.actor_num_nodes * asked.actor_num_gpus_per_node
    ray.init(address="auto", log_to_driver=False)
    group = placement_group([{"GPU": 1}] * gpus, strategy="PACK")
    ray.get(group.ready(), timeout=60)
    ranks = [
        Rank.options(
            scheduling_strategy=PlacementGroupSchedulingStrategy(
                group, placement_group_bundle_index=index * asked.actor_num_gpus_per_node
            )
        ).remote()
        for index in range(asked.actor_num_nodes)
    ]
    nodes = set(ray.get([rank.node.remote() for rank in ranks]))
    print(f"{gpus} GPUs on {len(nodes)} nodes", flush=True)
    return ranks


def misbehave(behave: dict[str, Any], now: list[int], ranks: list[Any]) -> None:
    """Crash, hang, or do nothing; `now` is attempt and step."""
    if now == behave.get("crash") or now in behave.get("crashes", []):
        print("crashing as told", flush=True)
        sys.stdout.flush()
        os._exit(behave["code"])
    if now == behave.get("hang"):
        ray.get([rank.wait_for_the_others.remote() for rank in ranks])


def main() -> int:
    asked = arguments()
    behave = json.loads((Path(__file__).parent / "behave.json").read_text())
    run = Path(os.environ["LONGRL_RUN"])
    attempt = int(os.environ[ATTEMPT_VARIABLE])
    if name := behave.get("print_variable"):
        print(f"{name} has {len(os.environ[name])} characters", flush=True)
    ranks = start_ranks(asked)
    first, value = load(asked.save)
    records, stop, positions = Records(run), StopFlag(run), Positions(asked.save)
    alarms = Alarms(load_recipe(run / "recipe.toml").recipe.alarms, records, stop.ask)
    writer = SummaryWriter(os.environ["TENSORBOARD_DIR"])
    for step in range(first, asked.num_rollout):
        if stop.asked():
            if step > first:
                save(asked.save, step - 1, value)
            stop.answer(step - 1)
            print(f"stopped before step {step}", flush=True)
            return 1
        misbehave(behave, [attempt, step], ranks)
        ray.get([rank.step.remote(behave["step_s"]) for rank in ranks], timeout=60)
        value = learn(value, step)
        cut = behave.get("cut", 0.0)
        records.write("rollout", step, {"reward/total": value, "truncated_share": cut})
        alarms.look(step)
        writer.add_scalar("train/loss", value, step)
        writer.flush()
        positions.write(step, {})
        positions.forget(step)
        if (step + 1) % asked.save_interval == 0 or step + 1 == asked.num_rollout:
            save(asked.save, step, value, behave.get("moments", 64))
    print("trained", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
