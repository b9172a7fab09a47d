"""Several held-out files at once: rows, sampling and metrics of each, and what a host is handed."""

from __future__ import annotations

import asyncio
import math
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slime_ext import hooks
from slime_ext.host import loggers
from slime_ext.host.types import RolloutFnEvalOutput, Sample
from slime_ext.metrics.records import read_rows
from slime_ext.recipe.errors import RecipeError
from slime_ext.recipe.load import load_recipe
from slime_ext.rollout import evaluation
from slime_ext.rollout.runtime import Runtime
from tests.fakes.engine import FakeEngine, answer, fake_engine

TWO_SETS = ("data.eval_sets.more=builtin:lab", "eval.samples_per_prompt=2", "eval.rows=3")


@pytest.fixture
def engine() -> Iterator[FakeEngine]:
    with fake_engine(answer([30, 2], {"type": "stop", "matched": 2})) as fake:
        yield fake


def arguments(runtime: Runtime, engine: FakeEngine) -> Namespace:
    return Namespace(
        longrl_recipe=str(runtime.folder / "recipe.toml"),
        sglang_router_ip="127.0.0.1",
        sglang_router_port=engine.port,
        group_rm=True,
    )


def test_every_set_is_evaluated_with_the_sampling_of_the_recipe(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine
) -> None:
    runtime = lab_runtime(*TWO_SETS, "eval.max_response_tokens=7")
    output = hooks.evaluate(arguments(runtime, engine), 3, None, evaluation=True)
    assert isinstance(output, RolloutFnEvalOutput)
    assert list(output.data) == ["eval", "more"]
    for name, found in output.data.items():
        samples: list[Sample] = found["samples"]
        assert [s.metadata["row"] for s in samples] == [0, 0, 1, 1, 2, 2]
        assert {s.metadata["split"] for s in samples} == {name}
        assert len(found["rewards"]) == len(found["truncated"]) == 6
        assert all(s.status is Sample.Status.COMPLETED for s in samples)
    assert len(engine.received) == 12
    asked = [body["sampling_params"] for body in engine.received]
    assert {(one["temperature"], one["max_new_tokens"]) for one in asked} == {(0.0, 7)}
    # Another file is another question, so it must not repeat the seeds of the first.
    assert len({one["sampling_seed"] for one in asked}) == 12


def test_metrics_are_recorded_and_logged_per_set(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine
) -> None:
    runtime = lab_runtime(*TWO_SETS)
    args = arguments(runtime, engine)
    logged: dict[str, float] = {}
    loggers.set_sink(logged.update)
    try:
        hooks.log_eval(3, args, hooks.evaluate(args, 3, None).data, None)
    finally:
        loggers.set_sink(None)
    rows = read_rows(runtime.folder / "metrics" / "eval.jsonl")
    assert [(row["dataset"], row["step"], row["samples"]) for row in rows] == [
        ("eval", 3, 6),
        ("more", 3, 6),
    ]
    assert {"eval/eval/reward/outcome", "eval/more/reward/outcome"} <= set(logged)


def test_an_undetermined_reward_is_left_out_of_the_hosts_mean(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = lab_runtime("eval.rows=2")
    totals = iter([math.nan, 1.0, math.nan, 1.0, math.nan, math.nan])

    async def score(*_: object) -> float:
        return next(totals)

    monkeypatch.setattr(evaluation, "score_sample", score)
    args = arguments(runtime, engine)
    assert hooks.evaluate(args, 0, None).data["eval"]["rewards"] == [1.0]
    # Pass rates are over whole groups: slime refuses a list of another length.
    args.log_passrate = True
    assert len(hooks.evaluate(args, 0, None).data["eval"]["rewards"]) == 2
    args.log_passrate = False
    (reward,) = hooks.evaluate(args, 0, None).data["eval"]["rewards"]
    assert math.isnan(reward)


def test_a_request_waits_for_room(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "AT_ONCE", 2)
    runtime = lab_runtime(*TWO_SETS)
    engine.gate.clear()

    async def most_at_once() -> int:
        work = asyncio.ensure_future(evaluation.evaluate_sets(runtime, arguments(runtime, engine)))
        while not engine.received:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        received = len(engine.received)
        engine.gate.set()
        await work
        return received

    assert asyncio.run(most_at_once()) <= 2
    assert len(engine.received) == 12


def test_a_call_for_training_or_without_held_out_rows_says_what_to_do(
    lab_runtime: Callable[..., Runtime], engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = lab_runtime()
    args = arguments(runtime, engine)
    with pytest.raises(ValueError, match="--eval-function-path"):
        hooks.evaluate(args, 0, None, evaluation=False)
    del runtime.rows["eval"]
    with pytest.raises(ValueError, match=r"data\.eval_sets"):
        hooks.evaluate(args, 0, None)


@pytest.mark.parametrize("name", ["train", "eval", "a/b", ""])
def test_the_name_of_a_set_must_be_free_and_fit_a_metric(name: str) -> None:
    lab = Path(__file__).parents[3] / "configs" / "embedded" / "lab.toml"
    with pytest.raises(RecipeError, match="cannot be the name of a data set"):
        load_recipe(lab, [f'data.eval_sets={{ "{name}" = "builtin:lab" }}'])
