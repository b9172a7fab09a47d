"""From sampled responses to scores, and from the scores of a group to advantages.

One design choice: a score lives in `sample.metadata` (parts, total, reason), so that it survives
the host's copies and dumps; `settle` computes group totals and advantages from there and may be
called again at no cost by the filter, the log and the post-process hook.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rewards.grouping import Member, group_advantages
from rewards.recorder import combine_safely, score_group_safely, score_safely
from rewards.types import Response, Score, Status, undetermined
from slime_ext.host.types import Sample
from slime_ext.metrics.sample_scores import NOT_SCORED, lost_reason, remember_score, score_of
from slime_ext.rollout.runtime import Runtime

STATUS: dict[Sample.Status, Status] = {
    Sample.Status.COMPLETED: "completed",
    Sample.Status.TRUNCATED: "truncated",
    Sample.Status.ABORTED: "aborted",
    Sample.Status.FAILED: "failed",
    Sample.Status.PENDING: "failed",
}


@dataclass(frozen=True, slots=True)
class Settled:
    """Raw rewards and advantages in the order of the samples, and what was counted."""

    raw: list[float]
    advantages: list[float]
    counts: dict[str, int]


async def score_sample(runtime: Runtime, sample: Sample) -> float:
    """Score one sample and remember the score in its metadata.

    Returns the sample's own total before anything group-relative; NaN where it is undetermined
    (slime needs a float and a silent 0.0 would be taught).
    """
    evaluation = _split(sample) != "train"
    lost = None if evaluation else lost_reason(sample)
    if lost is not None:
        # Whatever a reward would say of it: a lost request says nothing about the policy.
        return _remember(sample, undetermined(lost))
    task = runtime.task(_split(sample), sample.metadata["row"])
    response = _response(runtime, sample, evaluation)
    return _remember(sample, await score_safely(runtime.reward, task, response))


async def score_samples(runtime: Runtime, samples: Sequence[Sample]) -> list[float]:
    """`score_sample` of each, all at once.

    Where the reward scores whole groups and these are for training, they must be one group.
    """
    if not samples or not scored_in_groups(runtime, samples[0]):
        return list(await asyncio.gather(*(score_sample(runtime, one) for one in samples)))
    answered = [sample for sample in samples if lost_reason(sample) is None]
    task = runtime.task("train", samples[0].metadata["row"])
    responses = [_response(runtime, sample, evaluation=False) for sample in answered]
    scores = await score_group_safely(runtime.reward, task, responses) if answered else []
    found = {id(sample): score for sample, score in zip(answered, scores, strict=True)}
    return [
        _remember(one, found.get(id(one)) or undetermined(lost_reason(one) or NOT_SCORED))
        for one in samples
    ]


def scored_in_groups(runtime: Runtime, sample: Sample) -> bool:
    """Whether `sample` gets its reward together with its group only."""
    return runtime.reward.scores_groups() and _split(sample) == "train"


def _split(sample: Sample) -> str:
    return str(sample.metadata.get("split", "train"))


def _remember(sample: Sample, score: Score) -> float:
    remember_score(sample, score)
    return math.nan if score.total is None else score.total


def _response(runtime: Runtime, sample: Sample, evaluation: bool) -> Response:
    status = STATUS[sample.status]
    stop = sample.metadata.get("stop")
    if status == "truncated" and runtime.recipe.reward.truncated == "keep" and not evaluation:
        # Scored as it stands: as if it had ended here by itself.
        status, stop = "completed", runtime.family.stop_tokens[0]
    return Response(text=sample.response, status=status, stop=stop, evaluation=evaluation)


def settle(runtime: Runtime, samples: Sequence[Sample]) -> Settled:
    """Group totals, advantages and loss masks of `samples` (flat, any number of groups).

    Writes `combined`, `combined_parts` and `advantage` into each sample's metadata; a sample that
    must not be trained on gets loss mask 0 and `remove_sample`. Source: methods, section 0.
    """
    combined = _combine(runtime, samples)
    members = [
        Member(group=_group(sample), rollout=_rollout(sample), reward=score.total)
        for sample, score in zip(samples, combined, strict=True)
    ]
    result = group_advantages(members, runtime.recipe.advantage)
    masked_truncated = runtime.recipe.reward.truncated == "mask"
    for sample, score, advantage, keep in zip(
        samples, combined, result.advantages, result.keep, strict=True
    ):
        sample.metadata["combined"] = score.total
        sample.metadata["combined_parts"] = dict(score.parts)
        sample.metadata["advantage"] = advantage
        if not keep or (masked_truncated and sample.status is Sample.Status.TRUNCATED):
            sample.loss_mask = [0] * sample.response_length
            sample.remove_sample = True
    return Settled(result.raw, result.advantages, dict(result.counts))


def group_has_signal(runtime: Runtime, group: Sequence[Sample]) -> bool:
    """Whether training on this group would move the policy at all."""
    return any(advantage != 0 for advantage in settle(runtime, group).advantages)


def _combine(runtime: Runtime, samples: Sequence[Sample]) -> list[Score]:
    """Apply the reward's group rule; a rollout of several samples enters it once."""
    scores = [score_of(sample) for sample in samples]
    groups: dict[int, dict[int, list[int]]] = {}
    for position, sample in enumerate(samples):
        rollouts = groups.setdefault(_group(sample), {})
        rollouts.setdefault(_rollout(sample), []).append(position)
    for rollouts in groups.values():
        units = list(rollouts.values())
        own = [_score_of_rollout([scores[position] for position in unit]) for unit in units]
        combined = combine_safely(runtime.reward, own)
        for unit, score in zip(units, combined, strict=True):
            for position in unit:
                scores[position] = score
    return scores


def _score_of_rollout(scores: Sequence[Score]) -> Score:
    """A rollout with one sample undetermined is incomplete, so all of it is; slime for one asks no
    reward for the samples beside a lost one."""
    without = [score for score in scores if score.total is None]
    return min(without, key=lambda score: score.reason == NOT_SCORED, default=scores[0])


def _group(sample: Sample) -> int:
    return -1 if sample.group_index is None else sample.group_index


def _rollout(sample: Sample) -> int:
    """Fan-out shares `rollout_id`; the host leaves it None for single samples, and slime v0.2.4,
    which has no fan-out, has no such field."""
    shared = getattr(sample, "rollout_id", None)
    unit = shared if shared is not None else sample.index
    return -1 if unit is None else unit
