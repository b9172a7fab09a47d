"""Our own payload: scores, groups, refusals, limits, metrics, logs."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from rewards.judge.server.body import MAX_DEPTH, MAX_VALUES
from rewards.judge.server.logs import JsonLines
from rewards.judge.server.settings import ServerSettings
from tests.fakes.group_reward import RANKED, Ranked

TASK = {"id": "q1", "question": "Where?", "answer": "Paris"}


def item(text: str, **more) -> dict:
    return {"task": TASK, "response": {"text": text}} | more


async def until(condition) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


async def test_one_item_is_answered_by_one_score(served):
    one = served()
    right = await one.evaluate(item("Paris"))
    assert (right.status_code, right.json()["total"], right.json()["reason"]) == (200, 1.0, None)
    assert right.json()["parts"]["outcome"] == 1.0
    assert (await one.evaluate(item("Rome"))).json()["total"] == 0.0


async def test_a_list_keeps_its_order_and_a_missing_verdict_is_null(served):
    one = served()
    texts = ["Paris", "outage", "Rome", "bug", "Paris"]
    answer = await one.evaluate({"items": [item(text) for text in texts]})
    scores = answer.json()["scores"]
    assert answer.status_code == 200
    assert [score["total"] for score in scores] == [1.0, None, 0.0, None, 1.0]
    assert [s["reason"] for s in scores] == [
        None,
        "no_verdict:timeout",
        None,
        "error:KeyError",
        None,
    ]


async def test_items_of_a_group_get_the_group_rule_and_lone_ones_do_not(served):
    one = served("rubric")
    task = {**TASK, "gold_entities": [["Seine"], ["Eiffel"]]}
    ask = {"task": task, "response": {"text": "Seine <answer>Paris</answer>"}}
    answer = await one.evaluate({"items": [{**ask, "group": 7}, ask, {**ask, "group": "other"}]})
    totals = [score["total"] for score in answer.json()["scores"]]
    assert totals == pytest.approx([1.0, 0.85, 1.0])


async def test_a_reward_that_scores_groups_gets_them_whole(served, monkeypatch):
    monkeypatch.setattr(Ranked, "sizes", [])
    one = served(RANKED)
    texts = ["b", "ccc", "a", "dd"]
    items = [{**item(text), "group": len(text) != 1} for text in texts]
    answer = await one.evaluate({"items": [*items, item("alone")]})
    totals = [score["total"] for score in answer.json()["scores"]]
    assert totals == [0.0, 1.0, 0.0, 0.0, 0.0]
    assert sorted(Ranked.sizes) == [1, 2, 2]
    judged = {"task": TASK, "response": {"text": "a", "evaluation": True}, "group": 1}
    assert (await one.evaluate({"items": [judged]})).json()["scores"][0]["total"] == 1.0


async def test_status_and_evaluation_travel(served):
    one = served()
    cut = {"task": TASK, "response": {"text": "Paris", "status": "truncated"}}
    assert (await one.evaluate(cut)).json() | {"parts": {}} == {
        "total": 0.0,
        "parts": {},
        "reason": "truncated",
    }
    assert one.outcome.asked == []


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"task": TASK}, 422, "response"),
        ({"task": {**TASK, "alias": []}, "response": {"text": "x"}}, 422, "task.alias"),
        ({"task": {**TASK, "question": 3}, "response": {"text": "x"}}, 422, "task.question"),
        ({"task": TASK, "response": {"text": "x", "status": "done"}}, 422, "response.status"),
        ({"items": []}, 422, "items"),
        ([], 400, "object"),
    ],
)
async def test_a_wrong_payload_is_refused_by_key(served, body, status, words):
    answer = await served().evaluate(body)
    assert answer.status_code == status
    assert words in answer.json()["error"]


async def test_a_task_without_the_gold_the_reward_needs_is_refused_unless_allowed(served):
    refused = await served("rubric").evaluate({"items": [item("Paris")]})
    assert refused.status_code == 422
    assert "item 0" in refused.json()["error"]
    assert "gold_entities" in refused.json()["error"]
    allowed = served("rubric", settings=ServerSettings(outcome_only=True))
    assert (await allowed.evaluate(item("Paris"))).json()["total"] == 1.0
    evaluating = {"task": TASK, "response": {"text": "Paris", "evaluation": True}}
    assert (await served("rubric").evaluate(evaluating)).json()["total"] == 1.0


async def test_what_is_not_json_is_refused_without_a_look_inside(served):
    client = served().client
    plain = await client.post("/evaluate", content=b"{}", headers={"content-type": "text/plain"})
    assert plain.status_code == 415
    broken = await client.post(
        "/evaluate", content=b'{"task": SECRET', headers={"content-type": "application/json"}
    )
    assert broken.status_code == 400
    assert "SECRET" not in broken.text


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_above_the_limit_is_413_whatever_its_header_says(served, declared):
    one = served(settings=ServerSettings(max_body_bytes=1000))
    text = json.dumps(item("x" * 2000)).encode()

    async def parts():
        for start in range(0, len(text), 100):
            yield text[start : start + 100]

    answer = await one.client.post(
        "/evaluate",
        content=text if declared else parts(),
        headers={"content-type": "application/json"},
    )
    assert answer.status_code == 413
    assert "1000 bytes" in answer.json()["error"]
    assert one.outcome.asked == []


async def test_a_body_that_drips_is_408(served):
    one = served(settings=ServerSettings(body_timeout_s=0.05))

    async def drip():
        yield b"{"
        await asyncio.sleep(5)
        yield b"}"

    answer = await one.client.post(
        "/evaluate", content=drip(), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 408


async def test_deep_and_wide_documents_are_refused(served):
    one = served()
    deep: object = "x"
    for _ in range(MAX_DEPTH + 2):
        deep = [deep]
    for metadata in ({"deep": deep}, {"wide": [0] * MAX_VALUES}):
        body = {"task": {**TASK, "metadata": metadata}, "response": {"text": "Paris"}}
        assert (await one.evaluate(body)).status_code == 422
    very_deep = b'{"task":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    answer = await one.client.post(
        "/evaluate", content=very_deep, headers={"content-type": "application/json"}
    )
    assert answer.status_code in (400, 422)


async def test_running_out_of_time_keeps_what_was_decided(served):
    one = served(settings=ServerSettings(request_timeout_s=0.05))
    answer = await one.evaluate({"items": [item("Paris"), item("slow")]})
    scores = answer.json()["scores"]
    assert [score["total"] for score in scores] == [1.0, None]
    assert scores[1]["reason"] == "request_timeout"
    assert one.service.scoring.outstanding == 0


async def test_a_full_queue_is_503_with_retry_after_and_recovers(served):
    one = served(settings=ServerSettings(concurrency=1, waiting=1, retry_after_s=7))
    first = asyncio.create_task(one.evaluate({"items": [item("slow"), item("Paris")]}))
    await until(lambda: one.service.scoring.outstanding == 2)
    full = await one.evaluate(item("Paris"))
    assert (full.status_code, full.headers["retry-after"]) == (503, "7")
    assert one.outcome.asked == ["slow"]
    one.outcome.gate.set()
    assert (await first).status_code == 200
    assert (await one.evaluate(item("Paris"))).json()["total"] == 1.0
    assert (await one.evaluate({"items": [item("Paris")] * 3})).status_code == 422


async def test_a_client_that_leaves_gives_its_places_back(served):
    one = served()
    gone = asyncio.create_task(one.evaluate(item("slow")))
    await until(lambda: one.outcome.asked == ["slow"])
    gone.cancel()
    await asyncio.wait([gone])
    assert one.service.scoring.outstanding == 0


async def test_cut_short_answers_what_is_under_way_without_verdict(served):
    one = served()
    waiting = asyncio.create_task(one.evaluate(item("slow")))
    await until(lambda: one.outcome.asked == ["slow"])
    one.service.scoring.cut_short()
    assert (await waiting).json()["reason"] == "shutdown"


async def test_metrics_count_requests_verdicts_reasons_and_the_judge(served):
    one = served()
    await one.evaluate({"items": [item(t) for t in ("Paris", "Rome", "Rome", "outage")]})
    await one.evaluate([])
    await one.client.get("/favicon.ico")
    seen = await one.metrics()
    assert seen['longrl_requests_total{path="/evaluate",status="200"}'] == 1
    assert seen['longrl_requests_total{path="/evaluate",status="400"}'] == 1
    assert seen['longrl_requests_total{path="other",status="404"}'] == 1
    assert seen['longrl_verdicts_total{kind="right"}'] == 1
    assert seen['longrl_verdicts_total{kind="wrong"}'] == 2
    assert seen['longrl_verdicts_total{kind="none"}'] == 1
    assert seen['longrl_no_verdict_total{reason="no_verdict:timeout"}'] == 1
    assert seen['longrl_request_seconds_count{path="/evaluate"}'] == 2
    assert seen['longrl_judge_total{count="cache_hits"}'] == 3
    assert seen["longrl_outstanding"] == 0


async def test_reasons_of_a_chatty_reward_do_not_become_labels_without_end(served):
    from rewards.judge.server.metrics import MAX_REASONS
    from rewards.types import undetermined

    one = served()
    one.service.metrics.scored([undetermined(f"task {n}") for n in range(MAX_REASONS + 50)])
    reasons = {n: v for n, v in (await one.metrics()).items() if "no_verdict_total" in n}
    assert len(reasons) == MAX_REASONS + 1
    assert reasons['longrl_no_verdict_total{reason="other"}'] == 50


async def test_health_follows_the_endpoints(served):
    states = {"http://a/v1": "up", "http://b/v1": "timeout"}

    async def endpoints():
        return states

    one = served(endpoints=endpoints)
    assert (await one.client.get("/health")).json() == {
        "status": "ok",
        "endpoints": states,
        "outstanding": 0,
    }
    states["http://a/v1"] = "unreachable"
    down = await one.client.get("/health")
    assert (down.status_code, down.json()["status"]) == (503, "judge_down")
    assert (await served().client.get("/health")).status_code == 200


async def test_a_stopping_service_takes_nothing_more(served):
    one = served()
    one.service.stopping = True
    refused = await one.evaluate(item("Paris"))
    assert refused.status_code == 503
    assert "retry-after" in refused.headers
    assert (await one.client.get("/health")).status_code == 503


async def test_the_lifespan_closes_the_judge(served):
    one = served()
    async with one.app.router.lifespan_context(one.app):
        assert not one.outcome.closed
    assert one.outcome.closed


async def test_logs_hold_ids_and_counts_and_no_contents(served, caplog, monkeypatch):
    monkeypatch.setattr("rewards.recorder._seen", set())  # it logs a kind of error once
    one = served(token="t" * 32)
    auth = "Bearer " + "t" * 32
    caplog.set_level(logging.INFO)
    body = {"items": [item("SECRET ANSWER"), item("bug")]}
    answer = await one.evaluate(body, Authorization=auth, **{"X-Request-ID": "job-7.step-3"})
    assert answer.headers["x-request-id"] == "job-7.step-3"
    odd = await one.evaluate(body, Authorization="Bearer no", **{"X-Request-ID": "a b\tc"})
    assert odd.status_code == 401
    lines = [JsonLines().format(record) for record in caplog.records]
    requests = [json.loads(line) for line in lines if '"event":"request"' in line]
    assert requests[0]["request_id"] == "job-7.step-3"
    assert (requests[0]["items"], requests[0]["undetermined"]) == (2, 1)
    assert (requests[0]["status"], requests[1]["status"]) == (200, 401)
    assert requests[0]["seconds"] >= 0
    assert requests[1]["request_id"] not in ("a b\tc", "")
    assert any('"error":"KeyError"' in line for line in lines), "the reward's bug is logged"
    everything = "\n".join(lines)
    for secret in ("SECRET", "Paris", "Where", "tttt"):
        assert secret not in everything
