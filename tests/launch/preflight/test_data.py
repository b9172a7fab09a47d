"""Rows and the reward on them, through the real tokenizer of the lab."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from launch.preflight.context import Context
from launch.preflight.data import check_data
from launch.preflight.trials import check_trials, made_up
from rewards.base import Reward
from rewards.parsing.families import FAMILIES
from rewards.types import Response, Score, Task
from slime_ext.data.errors import DataError
from tests.fakes.exact_judge import exact_reply
from tests.fakes.judge import fake_judge
from tests.launch.preflight.conftest import MakeContext, named

Rows = Callable[..., Context]


class Raises(Reward):
    """A reward with a fault in it."""

    async def score(self, task: Task, response: Response) -> Score:
        raise ZeroDivisionError


def row(identity: str, **changes: Any) -> dict[str, Any]:
    chunks = [{"id": f"CHUNK_{n}", "text": f"ent{n} rel1 ent{n + 1}"} for n in (1, 2)]
    return {
        "id": identity,
        "question": "ent1 rel1",
        "context": chunks,
        "answer": "ent2",
        "gold_entities": [["ent2"]],
        "gold_chunks": ["CHUNK_1"],
    } | changes


LONG = {"question": "ent1 " * 80}


@pytest.fixture
def rows(make: MakeContext, tmp_path: Path) -> Rows:
    """rows([ROW, ...], SECTION={...}): a context whose training file holds these rows."""

    def context(lines: list[dict[str, Any]], **changes: Any) -> Context:
        path = tmp_path / "train.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        data = {
            "train": str(path),
            "prompt": "slime_ext.embedded.lab.render:chunk_prompt",
        } | changes.pop("data", {})
        return make(data=data, reward={"kind": "chunk"} | changes.pop("reward", {}), **changes)

    return context


def test_good_rows_in_every_file(rows: Rows, tmp_path: Path) -> None:
    (tmp_path / "held.jsonl").write_text(json.dumps(row("h")) + "\n")
    held = str(tmp_path / "held.jsonl")
    context = rows([row("a"), row("b")], data={"eval": held, "eval_sets": {"more": held}})
    findings = check_data(context.recipe, context)
    assert [(one.name, one.status) for one in findings] == [
        ("train", "pass"),
        ("eval", "pass"),
        ("more", "pass"),
    ]
    assert "2 rows: 2 ok" in findings[0].message


@pytest.mark.parametrize(
    ("changes", "policy", "status", "remedy"),
    [
        ({"answer": ""}, {}, "fail", "repair"),
        ({"gold_chunks": []}, {}, "fail", "outcome_only"),
        ({"gold_chunks": []}, {"missing_gold": "outcome_only"}, "warn", "concerns 1 rows"),
        (LONG, {}, "fail", "over_budget"),
        (LONG, {"over_budget": "skip"}, "warn", "concerns 1 rows"),
    ],
    ids=["invalid", "no gold", "no gold allowed", "too long", "too long skipped"],
)
def test_a_bad_row_by_the_recipes_policy(
    rows: Rows, changes: dict[str, Any], policy: dict[str, str], status: str, remedy: str
) -> None:
    context = rows([row("good"), row("bad", **changes)], data=policy)
    finding = named(check_data(context.recipe, context), "train")
    assert finding.status == status
    assert remedy in finding.remedy
    assert "2 rows: 1 ok" in finding.message
    assert any("bad" in line or "line 2" in line for line in finding.details)


def test_nothing_fits(rows: Rows) -> None:
    context = rows([row("long", **LONG)], data={"over_budget": "skip"})
    assert named(check_data(context.recipe, context), "train").status == "fail"


def test_a_file_without_rows_raises(rows: Rows) -> None:
    context = rows([])
    with pytest.raises(DataError, match="empty"):
        check_data(context.recipe, context)
    finding = named(check_trials(context.recipe, context), "trials")
    assert finding.status == "skip"
    assert "judge" not in finding.message + finding.remedy


def test_what_is_not_here_is_not_looked_at(make: MakeContext) -> None:
    for changes in ({"model": {"path": "/no/model"}}, {"data": {"train": "/no/rows.jsonl"}}):
        context = make(offline=True, **changes)
        for check in (check_data, check_trials):
            assert [one.status for one in check(context.recipe, context)] == ["skip"]


def test_rows_are_read_without_the_judges_key(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)
    endpoint = {"url": "http://127.0.0.1:9/v1", "key_env": "JUDGE_KEY"}
    judge = {"kind": "judge", "judge": {"endpoints": [endpoint]}}
    context = rows([row("a")], outcome=judge)
    assert named(check_data(context.recipe, context), "train").status == "pass"
    finding = named(check_trials(context.recipe, context), "trials")
    assert finding.status == "fail"
    assert "JUDGE_KEY" in finding.message


def test_the_reward_shows_what_it_makes_of_good_and_bad(rows: Rows) -> None:
    context = rows([row(str(n)) for n in range(5)])
    finding = named(check_trials(context.recipe, context), "trials")
    assert finding.status == "pass"
    assert "12 made-up responses" in finding.message
    shown = [line.split()[:3] for line in finding.details]
    assert shown[1][:2] == ["gold", "2.000"]
    assert shown[2] == ["answer", "only", "1.000"]
    assert len(finding.details) == 3 * 5


def test_a_reward_with_a_fault_fails(rows: Rows) -> None:
    context = rows([row("a")], reward={"kind": f"{__name__}:Raises"})
    finding = named(check_trials(context.recipe, context), "trials")
    assert finding.status == "fail"
    assert "4 of 4" in finding.message
    assert "undetermined" in finding.details[1]


def test_a_judged_outcome_is_tried_on_the_judge_unless_offline(rows: Rows) -> None:
    with fake_judge(exact_reply) as server:
        judge = {"kind": "judge", "judge": {"endpoints": [{"url": server.url}]}}
        offline = rows([row("a")], outcome=judge, offline=True)
        assert [one.status for one in check_trials(offline.recipe, offline)] == ["skip"]
        assert server.calls == 0
        context = rows([row("a")], outcome=judge)
        assert named(check_trials(context.recipe, context), "trials").status == "pass"
        assert server.calls > 0


def test_made_up_responses_cover_the_statuses() -> None:
    task = Task("a", "q", "Ur", gold_entities=(("Ur",),), gold_chunks=(3,))
    responses = made_up(task, FAMILIES["qwen3"])
    assert {one.status for one in responses.values()} == {"completed", "truncated"}
    assert "<CHUNK_3>" in responses["gold"].text
    assert responses["gold"].stop == "<|im_end|>"
    assert responses["empty"].text == ""
