"""LongTraceRL's rubric reward: combination modes, group maximum, text choice, stuffing."""

import pytest

from rewards.grouping import AdvantageConfig, Member, group_advantages
from rewards.parsing.families import FAMILIES
from rewards.registry import build_reward
from rewards.types import Response, Task, undetermined

GOLD = Task(
    id="t",
    question="q",
    answer="yes",
    gold_entities=(("Ur",), ("Uruk", "Warka"), ("Larsa",), ("Isin",)),
    distractor_titles=("Eridu", "Ur", "Nippur (city)", "!!!"),
)


async def scores(outcome, contents, task=GOLD, **config):
    reward = build_reward("rubric", config, FAMILIES["qwen3"], outcome)
    raw = [await reward.score(task, Response(f"r</think>{text}")) for text in contents]
    return reward.combine(raw)


def content(answer, *names):
    return f"{', '.join(names)}. <answer>{answer}</answer>"


async def totals(outcome, contents, **config):
    return [score.total for score in await scores(outcome, contents, **config)]


GROUP = (
    content("yes", "Ur", "Warka"),
    content("yes", "Ur"),
    content("no", "Ur", "Uruk", "Larsa", "Isin"),
    content("no"),
)


async def test_positive_only_with_the_maximum_of_a_wrong_answer(outcome):
    result = await scores(outcome, GROUP)
    assert [s.total for s in result] == pytest.approx([0.7 + 0.3 * 0.5, 0.7 + 0.3 * 0.25, 0, 0])
    assert [s.parts["rubric_raw"] for s in result] == [0.5, 0.25, 1.0, 0.0]
    assert [s.parts["rubric"] for s in result] == [0.5, 0.25, 1.0, 0.0]


async def test_division_by_the_group_maximum(outcome):
    result = await scores(outcome, GROUP[:2] + GROUP[3:])
    assert [s.parts["rubric"] for s in result] == [1.0, 0.5, 0.0]
    assert [s.total for s in result] == pytest.approx([1.0, 0.85, 0.0])
    undivided = await totals(outcome, GROUP[:2], group_max=False)
    assert undivided == pytest.approx([0.85, 0.775])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("positive_and_negative", [0.85, 0.775, 0.3, 0.0]),
        ("negative_only", [1.0, 1.0, 0.3, 0.0]),
        ("outcome_only", [1.0, 1.0, 0.0, 0.0]),
    ],
)
async def test_other_modes(mode, expected, outcome):
    assert await totals(outcome, GROUP, mode=mode) == pytest.approx(expected)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 1.0])
async def test_alpha(alpha, outcome):
    assert (await totals(outcome, GROUP, alpha=alpha))[0] == pytest.approx(1 - alpha / 2)


async def test_nobody_names_anything(outcome):
    assert await totals(outcome, [content("yes"), content("no")]) == pytest.approx([0.7, 0.0])


async def test_an_all_wrong_group_teaches_nothing(outcome):
    result = await totals(outcome, [content("no", "Ur"), content("no", "Ur", "Uruk"), GROUP[2]])
    members = [Member(0, i, total) for i, total in enumerate(result)]
    assert group_advantages(members, AdvantageConfig()).advantages == [0.0, 0.0, 0.0]


async def test_undetermined_members_do_not_set_the_maximum(outcome):
    lost = content("outage", "Ur", "Uruk", "Larsa", "Isin")
    result = await scores(outcome, [GROUP[0], lost])
    assert result[0].parts["rubric"] == 1.0
    assert result[1].total is None
    reward = build_reward("rubric", {}, FAMILIES["qwen3"], outcome)
    assert reward.combine([undetermined("aborted")]) == [undetermined("aborted")]


async def test_truncated_and_ill_formed_members_stay_at_zero(outcome):
    reward = build_reward("rubric", {"mode": "positive_and_negative"}, FAMILIES["qwen3"], outcome)
    full = "r</think>" + GROUP[2]
    raw = [
        await reward.score(GOLD, Response(full, status="truncated")),
        await reward.score(GOLD, Response(GROUP[2])),
        await reward.score(GOLD, Response("r</think>" + GROUP[0])),
    ]
    assert [s.total for s in reward.combine(raw)] == pytest.approx([0.0, 0.0, 1.0])


@pytest.mark.parametrize(("text", "raw"), [("content", 0.25), ("reasoning", 0.5), ("both", 0.75)])
async def test_which_text_counts(text, raw, outcome):
    reward = build_reward("rubric", {"text": text}, FAMILIES["qwen3"], outcome)
    score = await reward.score(GOLD, Response("Larsa Isin</think>Ur"))
    assert score.parts["rubric_raw"] == raw
    assert score.parts["evidence_recall"] == raw


async def test_legacy_matcher_is_an_option(outcome):
    contents = [content("yes", "a natural thing")]
    assert (await scores(outcome, contents, matcher="legacy"))[0].parts["rubric_raw"] == 0.25
    assert (await scores(outcome, contents))[0].parts["rubric_raw"] == 0.0


async def test_stuffing_counts_titles_that_are_no_gold_entity(outcome):
    contents = [content("yes", "Ur", "Eridu"), content("yes", "Ur", "Warka")]
    plain = await scores(outcome, contents)
    assert [s.parts["rubric_stuffing"] for s in plain] == [0.5, 0.0]
    assert [s.total for s in plain] == pytest.approx([0.85, 1.0])
    fined = await totals(outcome, contents, stuffing_penalty=0.4)
    assert fined == pytest.approx([0.7 + 0.3 * (0.5 - 0.4 * 0.5), 1.0])
    floor = await totals(outcome, [content("yes", "Eridu"), contents[1]], stuffing_penalty=1.0)
    assert floor[0] == pytest.approx(0.7)


async def test_evidence_recall_is_of_chunks_where_there_are_gold_chunks(outcome):
    task = Task(id="t", question="q", answer="yes", gold_entities=(("Ur",),), gold_chunks=(1, 2))
    cited = "Ur <useful_chunks><CHUNK_2></useful_chunks><answer>yes</answer>"
    score = (await scores(outcome, [cited], task=task))[0]
    assert (score.parts["evidence_recall"], score.parts["rubric_raw"]) == (0.5, 1.0)


async def test_an_entity_that_matches_nothing_is_a_data_error(outcome):
    task = Task(id="t", question="q", answer="yes", gold_entities=(("!!!",),))
    with pytest.raises(ValueError, match="gold_entities"):
        await scores(outcome, ["x"], task=task)


def test_settings_are_checked(outcome):
    for bad in ({"alpha": 1.5}, {"mode": "positive"}, {"alhpa": 0.3}):
        with pytest.raises(ValueError):
            build_reward("rubric", bad, FAMILIES["qwen3"], outcome)
