"""The rules every reward shares: truncated, ill-formed, lost, undecided, evaluation."""

import pytest

from rewards.parsing.families import FAMILIES
from rewards.registry import REWARDS, build_reward
from rewards.types import Response, Task

GOLD = Task(
    id="t",
    question="q",
    answer="yes",
    gold_entities=(("Ur",), ("Uruk", "Warka")),
    gold_chunks=(1, 2),
)
BLOCKS = "<useful_chunks><CHUNK_1></useful_chunks><answer>{}</answer> of Ur"
GOOD = "thinking</think>" + BLOCKS.format("yes")
KINDS = sorted(REWARDS)


def reward(kind, outcome, family="qwen3"):
    return build_reward(kind, {}, FAMILIES[family], outcome)


@pytest.mark.parametrize("kind", KINDS)
async def test_training_truncated_is_zero_without_asking(kind, outcome):
    score = await reward(kind, outcome).score(GOLD, Response(GOOD, status="truncated"))
    assert (score.total, score.reason) == (0.0, "truncated")
    assert set(score.parts.values()) == {0.0}
    assert outcome.asked == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", ["aborted", "failed"])
async def test_a_lost_request_is_undetermined_in_training_and_zero_in_evaluation(
    kind, status, outcome
):
    subject = reward(kind, outcome)
    score = await subject.score(GOLD, Response(GOOD, status=status))
    assert (score.total, score.reason) == (None, status)
    score = await subject.score(GOLD, Response(GOOD, status=status, evaluation=True))
    assert (score.total, score.reason) == (0.0, status)
    assert outcome.asked == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("text", "stop", "why"),
    [
        (BLOCKS.format("yes"), None, "no_close_tag"),
        ("r</think>x</think>" + BLOCKS.format("yes"), None, "many_close_tags"),
        ("</think>" + BLOCKS.format("yes"), None, "empty_reasoning"),
        ("r</think>", None, "empty_content"),
        (GOOD + "<|im_end|>", None, "special_token_in_content"),
        (GOOD, "<|endoftext|>", "wrong_stop"),
    ],
)
async def test_training_ill_formed_is_zero_without_asking(kind, text, stop, why, outcome):
    score = await reward(kind, outcome).score(GOLD, Response(text, stop=stop))
    assert (score.total, score.reason) == (0.0, f"ill_formed:{why}")
    assert score.parts["format"] == 0.0
    assert outcome.asked == []


@pytest.mark.parametrize("kind", KINDS)
async def test_evaluation_judges_an_ill_formed_response_on_its_content(kind, outcome):
    text = "r</think>x</think>" + BLOCKS.format("yes")
    score = await reward(kind, outcome).score(GOLD, Response(text, evaluation=True))
    assert (score.total, score.reason) == (1.0, "ill_formed:many_close_tags")
    assert score.parts["format"] == 0.0
    assert outcome.asked == ["yes"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["", "never closed", "r</think>  "])
async def test_evaluation_of_an_empty_response_is_zero_without_asking(kind, text, outcome):
    score = await reward(kind, outcome).score(GOLD, Response(text, evaluation=True))
    assert score.total == 0.0
    assert outcome.asked == []


@pytest.mark.parametrize("kind", KINDS)
async def test_evaluation_total_is_the_outcome_alone(kind, outcome):
    subject = reward(kind, outcome)
    right = await subject.score(GOLD, Response(GOOD, evaluation=True))
    assert (right.total, right.reason) == (1.0, None)
    assert right.parts["evidence_recall"] == 0.5
    assert subject.combine([right, right]) == [right, right]
    wrong = GOOD.replace("yes", "nope")
    assert (await subject.score(GOLD, Response(wrong, evaluation=True))).total == 0.0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("evaluation", [False, True])
async def test_no_verdict_is_undetermined(kind, evaluation, outcome):
    text = GOOD.replace("yes", "outage")
    score = await reward(kind, outcome).score(GOLD, Response(text, evaluation=evaluation))
    assert (score.total, score.reason) == (None, "no_verdict:timeout")
    assert "outcome" not in score.parts
    assert score.parts["evidence_recall"] == 0.5


@pytest.mark.parametrize("kind", KINDS)
async def test_an_empty_answer_is_wrong_without_asking(kind, outcome):
    score = await reward(kind, outcome).score(GOLD, Response(GOOD.replace("yes", " ")))
    assert score.parts["outcome"] == 0.0
    assert score.reason is None
    assert outcome.asked == []


@pytest.mark.parametrize("kind", KINDS)
async def test_without_gold_evidence_the_outcome_is_the_total(kind, outcome):
    bare = Task(id="t", question="q", answer="yes")
    subject = reward(kind, outcome)
    score = await subject.score(bare, Response(GOOD))
    assert score.total == 1.0
    assert "evidence_recall" not in score.parts
    assert score.parts.get("outcome_only") == (None if kind == "outcome" else 1.0)
    assert subject.combine([score, score]) == [score, score]


@pytest.mark.parametrize("kind", KINDS)
async def test_plain_family_has_no_thinking_block(kind, outcome):
    score = await reward(kind, outcome, "plain").score(GOLD, Response(BLOCKS.format("yes")))
    assert score.total is not None
    assert score.total > 0
    assert score.parts["format"] == 1.0


async def test_outcome_reward_reports_entity_recall_without_gold_chunks(outcome):
    task = Task(id="t", question="q", answer="yes", gold_entities=(("Ur",), ("Uruk",)))
    score = await reward("outcome", outcome).score(task, Response(GOOD))
    assert score.parts == {"outcome": 1.0, "format": 1.0, "evidence_recall": 0.5}
