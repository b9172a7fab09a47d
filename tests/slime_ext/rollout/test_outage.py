"""Missing verdicts are asked for again: response by response, or group by group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from slime_ext.host.types import Sample
from slime_ext.rollout.outage import JudgeOutageError, undecided, wait_for_verdicts
from slime_ext.rollout.runtime import Runtime
from slime_ext.rollout.scoring import score_samples
from tests.fakes.group_reward import RANKED, Ranked

PATIENT = (
    f'reward.kind="{RANKED}"',
    'outcome.kind="judge"',
    'outcome.judge.endpoints=[{url="http://127.0.0.1:1/v1"}]',
    "outcome.judge.retry_every_s=0.01",
)


def group(number: int, *texts: str) -> list[Sample]:
    meta = {"row": number, "split": "train", "stop": "<eos>"}
    return [
        Sample(
            group_index=number,
            index=10 * number + place,
            response=text,
            response_length=1,
            status=Sample.Status.COMPLETED,
            metadata=dict(meta),
        )
        for place, text in enumerate(texts)
    ]


def test_a_group_that_waits_is_asked_again_as_a_group(
    lab_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = lab_runtime(*PATIENT)
    monkeypatch.setattr(Ranked, "no_verdicts", True)
    first, second, third = group(0, "undecided", "a"), group(1, "b", "cc"), group(2, "undecided")
    samples = [*first, *second, *third]

    async def judged_late() -> None:
        for one in (first, second, third):
            await score_samples(runtime, one)
        assert len(undecided(samples)) == 3
        monkeypatch.setattr(Ranked, "sizes", [])
        monkeypatch.setattr(Ranked, "no_verdicts", False)
        await wait_for_verdicts(runtime, samples)

    asyncio.run(judged_late())
    assert Ranked.sizes == [2, 1]
    assert [sample.reward for sample in first] == [1.0, 0.0]
    assert [sample.reward for sample in second] == [None, None], "it had its verdicts"
    assert not undecided(samples)


def test_verdicts_that_stay_away_end_in_an_error_that_names_the_judge(
    lab_runtime: Callable[..., Runtime], monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = lab_runtime(*PATIENT, "outcome.judge.outage_limit_s=0.05")
    monkeypatch.setattr(Ranked, "no_verdicts", True)
    samples = group(0, "undecided", "a")

    async def never_judged() -> None:
        await score_samples(runtime, samples)
        await wait_for_verdicts(runtime, samples)

    with pytest.raises(JudgeOutageError, match=r"http://127\.0\.0\.1:1/v1 left 2 of 2"):
        asyncio.run(never_judged())
