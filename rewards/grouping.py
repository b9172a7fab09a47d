"""Group-relative advantages (GRPO), with undetermined members and fan-out handled.

One design choice: the unit of a group is the rollout, not the training sample. A rollout that fans
out into several samples enters mean and deviation once, and an undetermined sample enters neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

FLAT = 1e-6
"""Largest max - min of a quantity that carries no signal (methods, section 0)."""


class AdvantageConfig(BaseModel):
    """The [advantage] section: A = (r - mean) / (std + std_floor), or r - mean."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    std: bool = True
    """Divide by the group's deviation (n - 1); false centres only (Dr.GRPO, CoEM)."""
    std_floor: float = Field(default=1e-6, gt=0)
    """Added to the deviation; larger values damp groups whose rewards hardly differ."""


@dataclass(frozen=True, slots=True)
class Member:
    """One training sample: its group, its rollout inside the group, and its raw reward.

    None or a number that is not finite means undetermined.
    """

    group: int
    rollout: int
    reward: float | None


@dataclass(frozen=True, slots=True)
class GroupedAdvantages:
    """Per sample, in the order given. `keep` False means loss mask 0.

    `raw` is the reward to report: the sample's own; where undetermined, the mean of its group's
    valid rewards, else of the batch's, else 0.0. `counts`: groups, flat_groups,
    undetermined_groups (fewer than 2 determined rollouts), and samples undetermined and masked.
    """

    advantages: list[float]
    keep: list[bool]
    raw: list[float]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True)
class Centred:
    """A quantity of one group, centred. `units` counts determined rollouts; `std` is over them."""

    values: list[float]
    mean: float
    std: float
    units: int
    flat: bool


def is_flat(values: Sequence[float]) -> bool:
    """Whether max - min <= 1e-6; compared before any arithmetic, because the deviation of equal
    32-bit rewards can come out as 1e-4 (methods, section 0). True for no values."""
    return not values or max(values) - min(values) <= FLAT


def normalise_by_max(values: Sequence[float | None]) -> list[float | None]:
    """Divide by the largest determined value where that is above 0, else 0 for all (LongTraceRL's
    rubric, methods section 1). None stays None and does not enter the maximum."""
    top = max((value for value in values if value is not None), default=0.0)
    return [None if value is None else (value / top if top > 0 else 0.0) for value in values]


def centre(values: Sequence[float | None], rollouts: Sequence[int]) -> Centred:
    """One group's quantity minus its mean over determined rollouts.

    `values` and `rollouts` run over training samples; a rollout's value is the mean of its
    determined samples. Undetermined samples get 0.0; a flat quantity, or one with fewer than two
    determined rollouts, is exactly 0.0 for all. ValueError where the lengths differ.
    """
    if len(values) != len(rollouts):
        raise ValueError(f"{len(values)} values for {len(rollouts)} rollout ids")
    known = [value if _determined(value) else None for value in values]
    by_rollout: dict[int, list[float]] = {}
    for value, rollout in zip(known, rollouts, strict=True):
        if value is not None:
            by_rollout.setdefault(rollout, []).append(value)
    units = [math.fsum(own) / len(own) for own in by_rollout.values()]
    mean = math.fsum(units) / len(units) if units else 0.0
    flat = is_flat([value for value in known if value is not None])
    if flat or len(units) < 2:
        return Centred([0.0] * len(known), mean, 0.0, len(units), flat)
    std = math.sqrt(math.fsum((unit - mean) ** 2 for unit in units) / (len(units) - 1))
    centred = [0.0 if value is None else value - mean for value in known]
    return Centred(centred, mean, std, len(units), flat)


def group_advantages(members: Sequence[Member], config: AdvantageConfig) -> GroupedAdvantages:
    """Advantages of a whole batch (methods, section 0; DeepSeekMath's GRPO within each group).

    Groups may differ in size. A group with fewer than two determined rollouts gets advantage 0 and
    loss mask 0 for all its samples. A flat group gets exactly 0 and keeps its loss mask.
    """
    groups: dict[int, list[int]] = {}
    for index, member in enumerate(members):
        groups.setdefault(member.group, []).append(index)
    advantages = [0.0] * len(members)
    keep = [_determined(member.reward) for member in members]
    means: dict[int, float] = {}
    counts = {"groups": len(groups), "flat_groups": 0, "undetermined_groups": 0}
    for group, indices in groups.items():
        centred = centre(
            [members[i].reward for i in indices], [members[i].rollout for i in indices]
        )
        if centred.units:
            means[group] = centred.mean
        if centred.units < 2:
            counts["undetermined_groups"] += 1
            for i in indices:
                keep[i] = False
            continue
        counts["flat_groups"] += centred.flat
        scale = centred.std + config.std_floor if config.std else 1.0
        for i, value in zip(indices, centred.values, strict=True):
            advantages[i] = value / scale
    counts["undetermined"] = sum(not _determined(member.reward) for member in members)
    counts["masked"] = len(members) - sum(keep)
    return GroupedAdvantages(advantages, keep, _raw(members, means), counts)


def _raw(members: Sequence[Member], means: dict[int, float]) -> list[float]:
    """Rewards to report; undetermined ones must not move the mean that the logger computes."""
    batch: dict[tuple[int, int], list[float]] = {}
    for member in members:
        if member.reward is not None and math.isfinite(member.reward):
            batch.setdefault((member.group, member.rollout), []).append(member.reward)
    units = [math.fsum(own) / len(own) for own in batch.values()]
    fallback = math.fsum(units) / len(units) if units else 0.0
    return [
        member.reward
        if member.reward is not None and math.isfinite(member.reward)
        else means.get(member.group, fallback)
        for member in members
    ]


def _determined(reward: float | None) -> bool:
    return reward is not None and math.isfinite(reward)
