"""Kinds of rollouts, as a recipe may name them, for what an engine does on a bad day only, and one
that makes several samples of some rollouts."""

from __future__ import annotations

import copy
from typing import Any

from slime_ext.host.types import Sample
from slime_ext.rollout.kinds import RolloutKind
from slime_ext.rollout.single_turn import single_turn

_first: dict[int, Sample] = {}


def _aborting(members: int) -> RolloutKind:
    async def generate(runtime: Any, args: Any, sample: Any, *rest: Any) -> Any:
        done = await single_turn(runtime, args, sample, *rest)
        if done.index < members:
            done.status = Sample.Status.ABORTED
        return done

    return RolloutKind(generate)


async def _replay(runtime: Any, args: Any, sample: Any, *rest: Any) -> Any:
    if sample.index not in _first:
        _first[sample.index] = copy.deepcopy(await single_turn(runtime, args, sample, *rest))
    return copy.deepcopy(_first[sample.index])


async def _uneven(runtime: Any, args: Any, sample: Any, *rest: Any) -> Any:
    done = await single_turn(runtime, args, sample, *rest)
    done.rollout_id = done.index
    return [copy.deepcopy(done) for _ in range(1 + done.index % 2)]


async def _uneven_and_lossy(runtime: Any, args: Any, sample: Any, *rest: Any) -> Any:
    done = await single_turn(runtime, args, sample, *rest)
    done.rollout_id = done.index
    samples = [copy.deepcopy(done) for _ in range(1 + done.index % 3)]
    if done.index == 1:
        samples[-1].status = Sample.Status.ABORTED
    return samples


ABORTS_ONE = _aborting(1)
ABORTS_FOUR = _aborting(4)
REPLAYED = RolloutKind(_replay)
"""The first response to each sample is also the second: SGLang, unlike our engine, does not repeat
itself for a seed."""
UNEVEN = RolloutKind(_uneven, fan_out=True)
"""One sample for every other rollout, two for the rest."""
UNEVEN_AND_LOSSY = RolloutKind(_uneven_and_lossy, fan_out=True)
"""One to three samples of a rollout, and rollout 1 has lost one of its two."""
