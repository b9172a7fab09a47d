"""The released LongTraceRL payloads in both modes, and what their client gets back."""

from __future__ import annotations

import pytest

from rewards.judge.server.settings import ServerSettings

INFO = {
    "question": "Where?",
    "dataset_name": "longtrace",
    "rubrics": ["Seine", "Eiffel"],
    "rubric_reward_ratio": 0.3,
    "rubric_use_reasoning_content": False,
    "rubric_use_content": True,
}


def payload(**changes) -> dict:
    info = INFO | changes.pop("info", {})
    return {"label": "Paris", "extra_reward_info": info} | changes


def history(**message) -> dict:
    asked = {"role": "user", "content": "Where?"}
    return payload(history=[asked, {"role": "assistant"} | message])


GOOD = "The Seine. <answer>Paris</answer>"


async def test_both_modes_give_the_released_keys_and_ours(served):
    one = served("rubric", "qwen3")
    answers = [
        await one.evaluate(history(reasoning_content="hm", content=GOOD)),
        await one.evaluate(payload(response=f"<think>hm</think>\n\n{GOOD}")),
        await one.evaluate(payload(response=f"hm</think>{GOOD}<|im_end|>")),
    ]
    for answer in answers:
        assert answer.status_code == 200
        body = answer.json()
        assert body["reward"] == body["total"] == pytest.approx(0.7 + 0.3 * 0.5)
        assert (body["outcome_reward"], body["rubric_reward"]) == (1.0, 0.5)
        assert body["parts"]["rubric_raw"] == 0.5
        assert body["reason"] is None
    assert one.outcome.asked == ["Paris"] * 3


async def test_a_missing_verdict_is_503_and_never_a_number(served):
    one = served("rubric", "qwen3")
    for text in ("outage", "bug"):
        answer = await one.evaluate(history(reasoning_content="hm", content=text))
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert "reward" not in answer.json()
        assert answer.json()["total"] is None


async def test_running_out_of_time_is_503_too(served):
    one = served("rubric", "qwen3", settings=ServerSettings(request_timeout_s=0.02))
    answer = await one.evaluate(history(reasoning_content="hm", content="slow"))
    assert (answer.status_code, answer.json()["reason"]) == (503, "request_timeout")


async def test_ratio_0_is_evaluation(served):
    one = served("rubric", "qwen3")
    info = {"rubric_reward_ratio": 0, "rubrics": []}
    body = payload(response=f"no thinking tag</think></think>{GOOD}", info=info)
    answer = (await one.evaluate(body)).json()
    assert (answer["reward"], answer["outcome_reward"], answer["rubric_reward"]) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"truncated_content": "hm, the Seine"}, "truncated"),
        ({"reasoning_content": "hm"}, "ill_formed:no_close_tag"),
        ({"content": GOOD}, "ill_formed:empty_reasoning"),
        (
            {"content": "x", "ill_formed_content": "a</think>b</think>x<|im_end|>"},
            "ill_formed:many_close_tags",
        ),
        (
            {"content": "x", "ill_formed_content": "a</think>x<|endoftext|>"},
            "ill_formed:wrong_stop",
        ),
        ({"role": "user", "content": GOOD}, "ill_formed:no_close_tag"),
    ],
)
async def test_what_is_no_answer_is_a_determined_0_without_a_call(served, message, reason):
    one = served("rubric", "qwen3")
    answer = (await one.evaluate(history(**message))).json()
    assert (answer["reward"], answer["outcome_reward"], answer["rubric_reward"]) == (0.0, 0.0, 0.0)
    assert answer["reason"] == reason
    assert one.outcome.asked == []


async def test_an_aborted_response_says_nothing_about_the_policy(served):
    answer = await served("rubric", "qwen3").evaluate(history(aborted_content="hm"))
    assert (answer.status_code, answer.json()["reason"]) == (503, "aborted")


async def test_longrlvr_rubrics_are_chunk_numbers(served):
    one = served("chunk", "qwen3")
    text = "<useful_chunks><CHUNK_4></useful_chunks><answer>Paris</answer>"
    info = {"dataset_name": "longrlvr", "rubrics": [4, "7"]}
    answer = (await one.evaluate(payload(response=f"hm</think>{text}", info=info))).json()
    assert answer["parts"]["chunk_recall"] == 0.5
    assert answer["rubric_reward"] == answer["parts"]["chunk_fbeta"]
    bad = await one.evaluate(
        payload(response="x", info={"dataset_name": "longrlvr", "rubrics": ["Seine"]})
    )
    assert bad.status_code == 422


async def test_a_reward_that_does_not_fit_the_data_is_named(served):
    answer = await served("chunk", "qwen3").evaluate(payload(response=f"hm</think>{GOOD}"))
    assert answer.status_code == 422
    assert "gold_chunks" in answer.json()["error"]
    assert "reward.kind" in answer.json()["error"]


async def test_a_family_without_thinking_takes_the_content_alone(served):
    one = served("rubric", "plain")
    answer = await one.evaluate(history(reasoning_content="Eiffel", content=GOOD))
    assert answer.json()["rubric_reward"] == 0.5


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({"label": "Paris", "response": "x"}, "extra_reward_info"),
        ({"extra_reward_info": INFO, "response": "x"}, "label"),
        (payload(), "history or response"),
        (payload(history=[]), "history"),
        (payload(response=3), "response"),
        (payload(response="x", info={"rubric_reward_ratio": 2}), "rubric_reward_ratio"),
    ],
)
async def test_a_missing_or_wrong_key_is_named(served, body, key):
    answer = await served("rubric", "qwen3").evaluate(body)
    assert answer.status_code == 422
    assert key in answer.json()["error"]
