"""The embedded trainer in the place of slime's Megatron actor.

One design choice: only what slime's RayTrainGroup calls is here. Samples arrive as slime ships them
to a rank, and weights reach the engine by disk, at the address slime knows as its router.
"""

from __future__ import annotations

import argparse
import socket
from pathlib import Path
from typing import Any

import httpx

from slime_ext.embedded.loop import to_updates
from slime_ext.embedded.rollouts import Step
from slime_ext.embedded.trainer import Trainer
from slime_ext.host.types import Sample
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.rollout.runtime import runtime_of

ONE_RANK = {"dp_size": 1, "cp_size": 1, "vpp_size": 1, "microbatch_group_size_per_vp_stage": 1}


class EmbeddedActor:
    """One rank that trains with the embedded backend."""

    def __init__(self, world_size: int, *_: Any) -> None:
        assert world_size == 1
        self.version = 0

    def get_master_addr_and_port(self) -> tuple[str, int]:
        return socket.gethostname(), 0

    def init(self, args: argparse.Namespace, role: str, **_: Any) -> int:
        """Build the model; returns the rollout to begin with."""
        assert role == "actor"
        self.args = args
        runtime = runtime_of(args)
        self.recipe, self.folder = runtime.recipe, RunFolder(runtime.folder)
        self.records = runtime.records
        self.trainer = Trainer(
            Path(self.recipe.model.path), self.recipe, self.folder.path / "dumps"
        )
        return 0

    def set_rollout_manager(self, rollout_manager: Any) -> None:
        import ray

        ray.get(rollout_manager.set_train_parallel_config.remote(ONE_RANK))

    def train(self, rollout_id: int, rollout_data_ref: Any, external_data: Any = None) -> None:
        from slime.utils.data import process_rollout_data

        data = process_rollout_data(self.args, rollout_data_ref, 0, 1)
        metrics = self.trainer.train(to_updates(self._step(data), self.recipe))
        self.records.write("train", rollout_id, metrics)

    def save_model(self, rollout_id: int, force_sync: bool = False) -> None:
        self.trainer.save(self.folder.checkpoints)

    def update_weights(self) -> None:
        """Two folders in turn: the engine must be able to read its last one again."""
        folder = self.folder.path / f"weights_{self.version % 2}"
        self.trainer.export(folder)
        url = f"http://{self.args.sglang_router_ip}:{self.args.sglang_router_port}"
        body = {"model_path": str(folder), "weight_version": str(self.version)}
        httpx.post(f"{url}/update_weights_from_disk", json=body, timeout=60).raise_for_status()
        self.version += 1

    def clear_memory(self) -> None:
        """Nothing is kept that could be freed."""

    def _step(self, data: dict[str, Any]) -> Step:
        """The samples of a rank in the order in which they were sampled."""
        size = self.recipe.rollout.group_size
        order = sorted(range(len(data["tokens"])), key=lambda place: data["sample_indices"][place])
        samples = [
            Sample(
                group_index=int(data["sample_indices"][place]) // size,
                index=int(data["sample_indices"][place]),
                tokens=[int(token) for token in data["tokens"][place]],
                response_length=int(data["response_lengths"][place]),
                loss_mask=[int(flag) for flag in data["loss_masks"][place]],
                rollout_log_probs=[float(x) for x in data["rollout_log_probs"][place]],
            )
            for place in order
        ]
        advantages = [float(data["rewards"][place]) for place in order]
        return Step(samples, [float(data["raw_reward"][place]) for place in order], advantages)
