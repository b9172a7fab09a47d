"""The rollout half of the embedded loop: what slime's rollout manager does, on one event loop.

One design choice: nothing is decided here. Sampling, scoring, filtering and advantages are calls of
the same hooks slime loads; this file only gathers groups until the step is full.
"""

from __future__ import annotations

import asyncio
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tqdm import tqdm

from slime_ext import hooks
from slime_ext.host.types import Sample
from slime_ext.rollout.data_source import RecipeDataSource
from slime_ext.rollout.evaluation import evaluate_sets
from slime_ext.rollout.outage import wait_for_verdicts
from slime_ext.rollout.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Step:
    """The samples of one training step, flat and in group order, with their advantages."""

    samples: list[Sample]
    raw: list[float]
    advantages: list[float]


class Rollouts:
    """Generates, scores and settles the samples of a step or an evaluation."""

    def __init__(self, args: Namespace, runtime: Runtime, source: RecipeDataSource) -> None:
        self.args = args
        self.runtime = runtime
        self.source = source
        self.stopped: Callable[[], bool] = lambda: False
        """Whether the run was asked to stop; read while waiting for a judge."""

    async def train(self, step: int) -> Step:
        """Sample one training step; groups without signal are replaced where the recipe says so."""
        began = time.monotonic()
        groups, extra = await self._gather()
        samples = [sample for group in groups for sample in group]
        hooks.log_rollout(step, self.args, samples, extra, time.monotonic() - began)
        raw, advantages = hooks.post_process_rewards(self.args, samples)
        return Step(samples, raw, advantages)

    async def evaluate(self, step: int) -> None:
        """Evaluate on all held-out rows and record the metrics under `step`."""
        data = await evaluate_sets(self.runtime, self.args, self.stopped)
        hooks.log_eval(step, self.args, data, None)

    async def _gather(self) -> tuple[list[list[Sample]], dict[str, float]]:
        rollout = self.runtime.recipe.rollout
        kept: list[list[Sample]] = []
        spare: list[list[Sample]] = []
        batches = 0
        while len(kept) < rollout.prompts and batches < rollout.filter_max_batches:
            batches += 1
            groups = self.source.get_samples(rollout.prompts - len(kept))
            for group in await self._sample_groups(groups):
                verdict = hooks.keep_group(self.args, group)
                (kept if verdict.keep else spare).append(group)
        filled = rollout.prompts - len(kept)
        extra = {
            "batches": float(batches),
            "groups_dropped": float(len(spare) - filled),
            "groups_filled": float(filled),
        }
        return kept + spare[:filled], extra if rollout.filter != "none" else {}

    async def _sample_groups(self, groups: list[list[Sample]]) -> list[list[Sample]]:
        rollout = self.runtime.recipe.rollout
        sampling = {
            "temperature": rollout.temperature,
            "top_p": rollout.top_p,
            "top_k": rollout.top_k,
            "max_new_tokens": rollout.max_response_tokens,
        }
        total = sum(len(group) for group in groups)
        bar = tqdm(total=total, desc="rollout", leave=False, disable=None)
        found = await asyncio.gather(*(self._group(group, sampling, bar) for group in groups))
        bar.close()
        await wait_for_verdicts(self.runtime, hooks.flatten(found), self.stopped)
        return found

    async def _group(self, group: list[Sample], sampling: dict[str, Any], bar: Any) -> list[Sample]:
        """The samples of one group, each scored as it comes, or all when the last is there."""
        whole = self.runtime.reward.scores_groups()

        async def one(sample: Sample) -> list[Sample]:
            done = await hooks.generate(self.args, sample, dict(sampling))
            samples = done if isinstance(done, list) else [done]
            if not whole:
                await self._score(samples)
            bar.update()
            return samples

        samples = hooks.flatten(await asyncio.gather(*(one(sample) for sample in group)))
        if whole:
            await self._score(samples)
        return samples

    async def _score(self, samples: list[Sample]) -> None:
        rewards = await hooks.reward(self.args, samples)
        assert isinstance(rewards, list)
        for sample, reward in zip(samples, rewards, strict=True):
            sample.reward = reward
