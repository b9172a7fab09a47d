"""The recorder: nothing escapes a reward but cancellation."""

import asyncio
import logging
import math

import pytest

from rewards import recorder
from rewards.base import Reward, RewardConfig
from rewards.parsing.families import FAMILIES
from rewards.recorder import combine_safely, score_group_safely, score_safely
from rewards.types import Response, Score, Task, undetermined

TASK = Task(id="row-7", question="q", answer="a")


@pytest.fixture
def scripted(outcome, monkeypatch):
    monkeypatch.setattr(recorder, "_seen", set())

    def make(result):
        class Scripted(Reward):
            async def score(self, task, response):
                if isinstance(result, BaseException):
                    raise result
                return result

            def combine(self, scores):
                return await_free(result, scores)

        return Scripted(RewardConfig(), FAMILIES["plain"], outcome)

    return make


def await_free(result, scores):
    if isinstance(result, BaseException):
        raise result
    return result if isinstance(result, list) else list(scores)


async def test_a_score_passes_unchanged(scripted):
    score = Score(0.5, {"outcome": 1.0}, "truncated")
    assert await score_safely(scripted(score), TASK, Response("x")) is score
    lost = undetermined("aborted")
    assert await score_safely(scripted(lost), TASK, Response("x")) is lost


async def test_an_exception_is_undetermined_and_logged_once_per_kind(scripted, caplog):
    caplog.set_level(logging.ERROR)
    for _ in range(3):
        score = await score_safely(scripted(ValueError("bad row")), TASK, Response("x"))
        assert score == undetermined("error:ValueError")
    assert await score_safely(scripted(TimeoutError()), TASK, Response("x")) == undetermined(
        "error:TimeoutError"
    )
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert "row-7" in messages[0]
    assert "bad row" in messages[0]


@pytest.mark.parametrize("total", [math.nan, math.inf, -math.inf])
async def test_a_total_that_is_not_finite_is_undetermined(total, scripted):
    score = await score_safely(scripted(Score(total, {"outcome": 1.0})), TASK, Response("x"))
    assert score == Score(None, {"outcome": 1.0}, "not_finite")


async def test_a_part_that_is_not_finite_is_dropped_and_counted(scripted):
    score = await score_safely(scripted(Score(1.0, {"a": math.nan, "b": 1.0})), TASK, Response("x"))
    assert score == Score(None, {"b": 1.0}, "not_finite")


async def test_a_result_that_is_no_score_is_an_error(scripted):
    score = await score_safely(scripted(0.5), TASK, Response("x"))
    assert score == undetermined("error:AttributeError")


async def test_cancellation_passes_through(scripted):
    with pytest.raises(asyncio.CancelledError):
        await score_safely(scripted(asyncio.CancelledError()), TASK, Response("x"))


def test_combine_safely(scripted):
    scores = [Score(1.0), Score(0.0)]
    assert combine_safely(scripted(None), scores) == scores
    failed = [undetermined("error:KeyError")] * 2
    assert combine_safely(scripted(KeyError("rubric")), scores) == failed
    assert combine_safely(scripted([Score(1.0)]), scores) == [undetermined("error:ValueError")] * 2
    assert combine_safely(scripted([Score(math.nan), Score(0.0)]), scores)[0].reason == "not_finite"


async def test_a_group_is_scored_one_by_one_where_the_reward_does_not_want_groups(scripted):
    responses = [Response("x"), Response("y")]
    scores = [Score(1.0), Score(0.0)]
    reward = scripted(None)
    assert not reward.scores_groups()

    async def score(task, response):
        if response.text == "y":
            raise KeyError("y")
        return scores[0]

    reward.score = score
    found = await score_group_safely(reward, TASK, responses)
    assert found == [scores[0], undetermined("error:KeyError")]


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ([Score(1.0), Score(math.nan)], [Score(1.0), undetermined("not_finite")]),
        ([Score(1.0)], [undetermined("error:ValueError")] * 2),
        (OSError("reward model gone"), [undetermined("error:OSError")] * 2),
    ],
    ids=["not finite", "one short", "raises"],
)
async def test_a_reward_that_scores_groups_is_held_to_one_score_each(scripted, result, expected):
    class Grouped(type(scripted(None))):
        async def score_group(self, task, responses):
            return await_free(result, responses)

    reward = Grouped(RewardConfig(), FAMILIES["plain"], None)
    assert reward.scores_groups()
    assert await score_group_safely(reward, TASK, [Response("x"), Response("y")]) == expected


async def test_a_group_reward_may_build_on_the_scores_of_single_responses(scripted):
    class Halved(type(scripted(Score(1.0)))):
        async def score_group(self, task, responses):
            return [Score(score.total / 2) for score in await super().score_group(task, responses)]

    reward = Halved(RewardConfig(), FAMILIES["plain"], None)
    assert await score_group_safely(reward, TASK, [Response("x")] * 2) == [Score(0.5)] * 2
