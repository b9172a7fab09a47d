"""LongRLVR's chunk reward: formula, block rules, modes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewards.chunk_scores import chunk_scores, evidence_recall, f_beta
from rewards.parsing.families import FAMILIES
from rewards.registry import build_reward
from rewards.types import Response, Task

GOLD = Task(id="t", question="q", answer="yes", gold_chunks=(3, 7))


def written(ids, answer="yes"):
    cited = ", ".join(f"<CHUNK_{n}>" for n in ids)
    return f"<useful_chunks>{cited}</useful_chunks>\n<answer>{answer}</answer>"


async def score(outcome, content, family="qwen3", reasoning="r</think>", **config):
    reward = build_reward("chunk", config, FAMILIES[family], outcome)
    return await reward.score(GOLD, Response(reasoning + content))


@pytest.mark.parametrize(
    ("ids", "precision", "recall"),
    [
        ([3, 7], 1.0, 1.0),
        ([7, 3, 3], 2 / 3, 1.0),
        ([3], 1.0, 0.5),
        ([3, 4], 0.5, 0.5),
        ([3, 3, 3, 3], 0.25, 0.5),
        ([1, 2], 0.0, 0.0),
        ([], 0.0, 0.0),
    ],
)
async def test_formula(ids, precision, recall, outcome):
    fbeta = 5 * precision * recall / (4 * precision + recall) if precision else 0.0
    for answer, right in (("yes", 1.0), ("half", 0.5), ("no", 0.0)):
        result = await score(outcome, written(ids, answer))
        assert result.total == pytest.approx(right + 0.1 * fbeta + 0.9 * right * fbeta)
        assert result.parts == pytest.approx(
            {
                "outcome": right,
                "chunk_precision": precision,
                "chunk_recall": recall,
                "chunk_fbeta": fbeta,
                "evidence_recall": recall,
                "format": 1.0,
            }
        )


async def test_range_is_zero_to_two(outcome):
    assert (await score(outcome, written([3, 7]))).total == 2.0
    assert (await score(outcome, written([], "no"))).total == 0.0
    assert (await score(outcome, written([3, 7], "no"))).total == pytest.approx(0.1)
    assert (await score(outcome, written([]))).total == 1.0


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("<answer>yes</answer>", "useful_chunks"),
        (written([3]) + "<useful_chunks></useful_chunks>", "useful_chunks"),
        ("<useful_chunks><CHUNK_3></useful_chunks>", "answer"),
        (written([3]) + "<answer>yes</answer>", "answer"),
        (written([3]) + "</answer>", "answer"),
        ("yes", "useful_chunks"),
    ],
)
async def test_not_exactly_one_block_of_each_is_zero(content, why, outcome):
    result = await score(outcome, content)
    assert (result.total, result.reason) == (0.0, f"ill_formed:{why}")
    assert set(result.parts.values()) == {0.0}
    assert outcome.asked == []


async def test_order_is_free_unless_strict(outcome):
    swapped = "<answer>yes</answer><useful_chunks><CHUNK_3><CHUNK_7></useful_chunks>"
    assert (await score(outcome, swapped)).total == 2.0
    assert (await score(outcome, swapped, strict_order=True)).reason == "ill_formed:order"
    assert (await score(outcome, written([3, 7]), strict_order=True)).total == 2.0


async def test_blocks_are_counted_after_the_thinking_part(outcome):
    draft = written([1], "draft") + "</think>"
    assert (await score(outcome, written([3, 7]), reasoning=draft)).total == 2.0
    plain = await score(outcome, written([3, 7]), "plain", written([1], "draft"))
    assert plain.reason == "ill_formed:useful_chunks"


@pytest.mark.parametrize(
    ("mode", "right", "wrong"), [("answer_only", 1.0, 0.0), ("context_only", 1.0, 0.1)]
)
async def test_modes(mode, right, wrong, outcome):
    assert (await score(outcome, written([3, 7]), mode=mode)).total == pytest.approx(right)
    assert (await score(outcome, written([3, 7], "no"), mode=mode)).total == pytest.approx(wrong)


async def test_beta_and_eta_are_settings(outcome):
    result = await score(outcome, written([3], "no"), beta=1.0, eta=0.5)
    assert result.parts["chunk_fbeta"] == pytest.approx(2 / 3)
    assert result.total == pytest.approx(1 / 3)


async def test_no_group_normalisation(outcome):
    reward = build_reward("chunk", {}, FAMILIES["qwen3"], outcome)
    raw = [await score(outcome, written([3])), await score(outcome, written([3, 4]))]
    assert reward.combine(raw) == raw


def test_recall_is_over_distinct_gold_chunks():
    assert chunk_scores([3, 3, 7], [3, 3, 7, 7]).recall == 1.0
    with pytest.raises(ValueError, match="gold chunk"):
        chunk_scores([1], [])
    assert f_beta(0.0, 0.0, 2.0) == 0.0


def test_evidence_recall_needs_one_block():
    assert evidence_recall(GOLD, written([3])) == 0.5
    assert evidence_recall(GOLD, written([3]) + written([7])) == 0.0
    assert evidence_recall(GOLD, "<CHUNK_3>") == 0.0
    assert evidence_recall(Task(id="t", question="q", answer="a"), "x") is None


ids = st.lists(st.integers(0, 9), max_size=12)


@given(ids, st.lists(st.integers(0, 9), min_size=1, max_size=6), st.floats(0.1, 5))
def test_scores_stay_in_range_and_repeats_never_pay(written_ids, gold, beta):
    scores = chunk_scores(written_ids, gold, beta)
    for value in (scores.precision, scores.recall, scores.fbeta):
        assert 0.0 <= value <= 1.0 + 1e-12
    repeated = chunk_scores([*written_ids, *written_ids[:1]], gold, beta)
    assert repeated.fbeta <= scores.fbeta + 1e-12
    assert repeated.recall == scores.recall
