"""The embedded training loop: roll out, train, push weights, record; evaluate and save on schedule.

One design choice: the loop knows no reward, no format and no advantage. It moves samples between
the hooks, the trainer and the engine, and owns only order, schedule and recovery.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from argparse import Namespace
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from slime_ext.embedded.checkpoint import has_checkpoint
from slime_ext.embedded.console import show_step
from slime_ext.embedded.engine.process import EngineDownError
from slime_ext.embedded.engines import EngineHandle, make_engine
from slime_ext.embedded.final_model import export_newest
from slime_ext.embedded.rollouts import Rollouts, Step
from slime_ext.embedded.samples import TrainSample
from slime_ext.embedded.stopping import StopRequest
from slime_ext.embedded.supervisor import watched
from slime_ext.embedded.trainer import Trainer
from slime_ext.embedded.tripwire import NonFiniteError
from slime_ext.host import loggers
from slime_ext.host.types import Sample
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.data_source import RecipeDataSource
from slime_ext.rollout.outage import JudgeOutageError
from slime_ext.rollout.runtime import Runtime, runtime_of


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: the step it reached and whether that was its last."""

    step: int
    finished: bool


class Loop:
    """One attempt of a run on one machine. `run` may be called once."""

    def __init__(self, recipe: Recipe, folder: RunFolder, attempt: int) -> None:
        self.recipe = recipe
        self.folder = folder
        self.attempt = attempt
        self.weights = folder.path / ".weights"
        self.args = host_args(recipe, folder)
        self.runtime: Runtime = runtime_of(self.args)
        self.records = self.runtime.records
        self.source = RecipeDataSource(self.args)
        self.rollouts = Rollouts(self.args, self.runtime, self.source)
        self.trainer = Trainer(Path(recipe.model.path), recipe, folder.path / "dumps")
        self.engine: EngineHandle = make_engine(recipe, folder, attempt)

    def run(self, stop: StopRequest) -> Ended:
        """Train until the recipe's last step or until `stop` is set; resumable either way."""
        try:
            return asyncio.run(self._run(stop))
        finally:
            self.engine.stop()
            shutil.rmtree(self.weights, ignore_errors=True)

    async def _run(self, stop: StopRequest) -> Ended:
        try:
            return await self._attempt(stop)
        finally:
            await self.runtime.reward.outcome.aclose()

    async def _attempt(self, stop: StopRequest) -> Ended:
        self.rollouts.stopped = lambda: stop.requested
        self.runtime.alarms.stop = stop.request_once
        step = self._restore()
        self.records.event("start", step=step)
        self.args.sglang_router_ip, self.args.sglang_router_port = self.engine.start()
        if step > 0 or self.recipe.model.megatron_checkpoint is not None:
            self._push(step)
        step = await self._train_from(step, stop)
        if not stop.requested:
            await self._unless_outage(self._evaluate(step), stop)
        if stop.requested:
            self.records.event("stopped", step=step, reason=stop.reason)
            return Ended(step, finished=False)
        export_newest(self.trainer, self.folder)
        self.records.event("finished", step=step)
        return Ended(step, finished=True)

    async def _train_from(self, step: int, stop: StopRequest) -> int:
        """Train to the recipe's last step, or until `stop` is set; returns the step reached, which
        is saved."""
        steps, every = self.recipe.rollout.steps, self.recipe.checkpoint.every
        bar = tqdm(total=steps, initial=step, desc=self.recipe.name, unit="step", disable=None)
        saved = step
        while step < steps and not stop.requested:
            position = self.source.state()
            if not await self._unless_outage(self._step(step, bar), stop):
                # The step's prompts are served again when the run goes on.
                self.source.restore(position)
                break
            step += 1
            if step % every == 0:
                self._save(step)
                saved = step
        bar.close()
        if saved != step:
            self._save(step)
        return step

    async def _unless_outage(self, work: Coroutine[Any, Any, None], stop: StopRequest) -> bool:
        """Do `work`; a judge that stays down becomes a request to stop, and False."""
        try:
            await work
        except JudgeOutageError as error:
            stop.request(str(error))
            return False
        return True

    async def _step(self, step: int, bar: Any) -> None:
        if step % self.recipe.eval.every == 0:
            await self._evaluate(step)
        await self._train_step(step, bar)

    async def _train_step(self, step: int, bar: Any) -> None:
        cpu, wall = self._cpu(), time.monotonic()
        async with self._watched(step):
            batch = await self.rollouts.train(step)
        try:
            metrics = self.trainer.train(to_updates(batch, self.recipe))
        except NonFiniteError as error:
            self.runtime.alarms.look(step, {error.quantity: error.value})
            raise
        self._push(step + 1)
        cpu = self._cpu() - cpu
        metrics |= {"cpu_seconds": cpu, "wall_seconds": time.monotonic() - wall}
        self.records.write("train", step, metrics)
        self.runtime.alarms.look(step)
        logged = {f"train/{key}": value for key, value in metrics.items()}
        loggers.log(self.args, logged, step, axis="train/step")
        bar.update()
        show_step(bar, step, self.runtime.latest, metrics["loss"])

    async def _evaluate(self, step: int) -> None:
        if self.runtime.eval_splits:
            async with self._watched(step):
                await self.rollouts.evaluate(step)

    def _watched(self, step: int) -> Any:
        return watched(
            self.engine, lambda n: self.records.event("engine_restarted", step=step, restart=n)
        )

    def _push(self, version: int) -> None:
        """Give the engine the trainer's weights, through the table that export uses."""
        self.trainer.export(self.weights)
        try:
            self.engine.update_weights(self.weights, version)
        except EngineDownError as error:
            self.records.event("engine_restarted", step=version, reason=str(error))
            self.engine.restart()

    def _save(self, step: int) -> None:
        # The data position first: a checkpoint that is named as newest must have one.
        self.source.save(step)
        self.trainer.save(self.folder.checkpoints)
        self.records.event("checkpoint", step=step)

    def _restore(self) -> int:
        """Load the newest checkpoint, if there is one; returns the step to go on with."""
        if not has_checkpoint(self.folder.checkpoints):
            return 0
        self.trainer.load(self.folder.checkpoints)
        self.source.load(self.trainer.step)
        return self.trainer.step

    def _cpu(self) -> float:
        """CPU seconds of this process and of the engine."""
        return time.process_time() + self.engine.cpu_seconds()


def host_args(recipe: Recipe, folder: RunFolder) -> Namespace:
    """The attributes of slime's `args` that our hooks read."""
    return Namespace(
        longrl_recipe=str(folder.recipe),
        save=str(folder.checkpoints),
        n_samples_per_prompt=recipe.rollout.group_size,
        rollout_batch_size=recipe.rollout.prompts,
        longrl_batch_requests=True,
        sglang_router_ip=None,
        sglang_router_port=None,
    )


def to_updates(step: Step, recipe: Recipe) -> list[list[TrainSample]]:
    """Split a step into its optimiser updates, whole groups in order (methods, section 0)."""
    groups: dict[int | None, list[TrainSample]] = {}
    for sample, advantage in zip(step.samples, step.advantages, strict=True):
        groups.setdefault(sample.group_index, []).append(_train_sample(sample, advantage))
    size = len(groups) // recipe.rollout.updates
    whole = list(groups.values())
    return [
        [sample for group in whole[start : start + size] for sample in group]
        for start in range(0, len(whole), size)
    ]


def _train_sample(sample: Sample, advantage: float) -> TrainSample:
    cut = len(sample.tokens) - sample.response_length
    shared = getattr(sample, "rollout_id", None)
    assert sample.rollout_log_probs is not None
    assert sample.loss_mask is not None
    return TrainSample(
        prompt_ids=sample.tokens[:cut],
        response_ids=sample.tokens[cut:],
        rollout_log_probs=sample.rollout_log_probs,
        advantage=advantage,
        loss_mask=sample.loss_mask,
        group=int(sample.group_index or 0),
        rollout=int((sample.index if shared is None else shared) or 0),
    )
