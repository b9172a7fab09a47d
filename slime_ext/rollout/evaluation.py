"""Evaluation on every held-out file of the recipe, the same on every backend.

One design choice: our own function in place of slime's, which reads other row formats, takes its
sampling from other flags, and refuses to run beside a reward that wants whole groups.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

from slime_ext.host.types import Sample
from slime_ext.rollout.kinds import own_kind
from slime_ext.rollout.outage import wait_for_verdicts
from slime_ext.rollout.runtime import Runtime
from slime_ext.rollout.scoring import score_sample
from slime_ext.rollout.single_turn import single_turn
from slime_ext.rollout.usable import skipped_rows

AT_ONCE = 512
"""Requests under way behind a router: each holds its body, 0.9 MB at 128K tokens."""


def eval_samples(runtime: Runtime, split: str) -> list[Sample]:
    """`samples_per_prompt` samples of every usable row of `split`, in file order."""
    store, section = runtime.rows[split], runtime.recipe.eval
    skipped = skipped_rows(runtime, split)
    usable = [row for row in range(len(store)) if row not in skipped][: section.rows]
    samples = []
    for position in usable:
        row = store.row(position)
        for repeat in range(section.samples_per_prompt):
            meta = {"row": position, "id": row.id, "source": row.source, "split": split}
            index = position * section.samples_per_prompt + repeat
            samples.append(
                Sample(group_index=position, index=index, label=row.answer, metadata=meta)
            )
    return samples


async def evaluate_sets(
    runtime: Runtime, args: Any, stopped: Callable[[], bool] = lambda: False
) -> dict[str, dict[str, Any]]:
    """Per held-out split its `rewards`, `truncated` and `samples`, as slime's loggers want them.

    An undetermined reward is left out of `rewards` (one NaN would be the mean), unless pass rates
    are logged, which count whole groups. Raises JudgeOutageError as `wait_for_verdicts`.
    """
    asked = [sample for split in runtime.eval_splits for sample in eval_samples(runtime, split)]
    everything = await _sample_all(runtime, args, asked)
    samples: dict[str, list[Sample]] = {split: [] for split in runtime.eval_splits}
    for sample in everything:
        samples[sample.metadata["split"]].append(sample)
    await wait_for_verdicts(runtime, everything, stopped)
    keep_all = getattr(args, "log_passrate", False)
    return {
        split: {
            "rewards": [s.reward for s in found] if keep_all else _determined(found),
            "truncated": [s.status is Sample.Status.TRUNCATED for s in found],
            "samples": found,
        }
        for split, found in samples.items()
    }


async def _sample_all(runtime: Runtime, args: Any, samples: list[Sample]) -> list[Sample]:
    own = own_kind(runtime)
    generate = single_turn if own is None else own.generate
    section, rollout = runtime.recipe.eval, runtime.recipe.rollout
    sampling = {
        "temperature": section.temperature,
        "top_p": section.top_p,
        "top_k": section.top_k,
        "max_new_tokens": section.max_response_tokens or rollout.max_response_tokens,
    }
    # What the embedded engine gets as one call must be asked for at one moment.
    together = getattr(args, "longrl_batch_requests", False)
    room = contextlib.nullcontext() if together else asyncio.Semaphore(AT_ONCE)
    bar = tqdm(total=len(samples), desc="evaluate", leave=False, disable=None)

    async def one(sample: Sample) -> list[Sample]:
        async with room:
            done = await generate(runtime, args, sample, dict(sampling), True)
        found = done if isinstance(done, list) else [done]
        for each in found:
            each.reward = await score_sample(runtime, each)
        bar.update()
        return found

    done = await asyncio.gather(*(one(sample) for sample in samples))
    bar.close()
    return [sample for found in done for sample in found]


def _determined(samples: list[Sample]) -> list[float]:
    rewards = [float(s.reward) for s in samples if isinstance(s.reward, int | float)]
    return [reward for reward in rewards if not math.isnan(reward)] or [math.nan]
