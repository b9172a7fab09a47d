"""When the judge gives no verdicts: wait and ask again, and stop resumably if it lasts.

One design choice: responses are kept and only the verdicts are asked for again, so an outage costs
time and nothing else; no step is trained on the few samples that happened to be judged.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

from slime_ext.errors import ExplainedError
from slime_ext.host.types import Sample
from slime_ext.metrics.sample_scores import score_of, undetermined_reasons
from slime_ext.rollout.runtime import Runtime
from slime_ext.rollout.scoring import score_samples, scored_in_groups

NO_VERDICT = "no_verdict"


class JudgeOutageError(ExplainedError, RuntimeError):
    """The judge gave too few verdicts for too long, or the run was asked to stop meanwhile."""


def undecided(samples: Sequence[Sample]) -> list[Sample]:
    """Samples whose reward waits for a verdict."""
    return [s for s in samples if (score_of(s).reason or "").startswith(NO_VERDICT)]


def too_many_undecided(runtime: Runtime, samples: Sequence[Sample]) -> bool:
    """Whether the share of undecided samples is above the recipe's limit."""
    if runtime.recipe.outcome.kind != "judge":
        return False
    return len(undecided(samples)) > runtime.recipe.outcome.judge.max_no_verdict_share * len(
        samples
    )


async def wait_for_verdicts(
    runtime: Runtime, samples: Sequence[Sample], stopped: Callable[[], bool] = lambda: False
) -> None:
    """Ask again for missing verdicts until few enough are missing.

    Raises JudgeOutageError after `outage_limit_s`, or as soon as `stopped()` is true.
    """
    if not too_many_undecided(runtime, samples):
        return
    judge, began = runtime.recipe.outcome.judge, time.monotonic()
    runtime.records.event("judge_outage", undecided=dict(undetermined_reasons(samples)))
    print(f"judge: {len(undecided(samples))} of {len(samples)} answers undecided; asking again")
    while too_many_undecided(runtime, samples):
        lasted = time.monotonic() - began
        if lasted >= judge.outage_limit_s or stopped():
            raise JudgeOutageError(_message(runtime, samples, lasted))
        await asyncio.sleep(judge.retry_every_s)
        # One answer first: a judge that is still down should not be asked for all of them.
        first, *rest = _to_ask_again(runtime, samples)
        await _ask_again(runtime, first)
        if not undecided(first):
            await asyncio.gather(*(_ask_again(runtime, unit) for unit in rest))
    runtime.records.event("judge_recovered", seconds=time.monotonic() - began)


def _to_ask_again(runtime: Runtime, samples: Sequence[Sample]) -> list[list[Sample]]:
    """The undecided samples one by one, or the groups that hold them."""
    waiting = undecided(samples)
    if not scored_in_groups(runtime, waiting[0]):
        return [[sample] for sample in waiting]
    groups = {sample.group_index for sample in waiting}
    return [[one for one in samples if one.group_index == group] for group in groups]


async def _ask_again(runtime: Runtime, unit: Sequence[Sample]) -> None:
    for sample, reward in zip(unit, await score_samples(runtime, unit), strict=True):
        sample.reward = reward


def wait_in_thread(runtime: Runtime, samples: Sequence[Sample]) -> None:
    """`wait_for_verdicts` for a hook that is not asynchronous, whatever loop its caller runs in."""
    if not too_many_undecided(runtime, samples):
        return
    failure: list[JudgeOutageError] = []

    def work() -> None:
        try:
            asyncio.run(wait_for_verdicts(runtime, samples))
        except JudgeOutageError as error:
            failure.append(error)

    thread = threading.Thread(target=work, name="wait-for-verdicts")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


def _message(runtime: Runtime, samples: Sequence[Sample], seconds: float) -> str:
    urls = ", ".join(endpoint.url for endpoint in runtime.recipe.outcome.judge.endpoints)
    reasons = ", ".join(f"{n} {reason}" for reason, n in undetermined_reasons(samples).items())
    return (
        f"the judge at {urls} left {len(undecided(samples))} of {len(samples)} answers undecided "
        f"for {seconds:.0f} s ({reasons})"
    )
