"""Hours from stated throughputs, and from the first steps of a run."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from launch.plan.flops import forward_flops, training_flops
from launch.plan.observed import RunRecordsError, observe
from launch.plan.plan import make_plan
from tests.launch.plan.made import made, shape_of

PLAN = {
    "plan__mean_prompt_tokens": 100_000,
    "plan__mean_response_tokens": 10_000,
    "plan__train_tokens_per_gpu_s": 1000.0,
    "plan__prefill_tokens_per_gpu_s": 2000.0,
    "plan__decode_tokens_per_gpu_s": 200.0,
}


def test_hours_from_stated_throughputs() -> None:
    time = make_plan(made(**PLAN), shape_of("4b")).duration
    # 16 prompts are computed once each, 128 responses decoded, on 32 GPUs.
    assert time.rollout_s == pytest.approx((16 * 100_000 / 2000 + 128 * 10_000 / 200) / 32)
    assert time.tokens_per_step == 128 * 110_000
    assert time.train_s == pytest.approx(128 * 110_000 / 1000 / 32)
    assert time.samples == 25_600
    assert time.hours == pytest.approx(200 * (time.rollout_s + time.train_s) / 3600)
    assert time.gpu_hours == pytest.approx(32 * time.hours)
    assert time.expected_loss_s == pytest.approx(20 * time.step_s / 2)


def test_a_pass_without_gradients_is_a_quarter_of_a_training_pass() -> None:
    plain = make_plan(made(**PLAN), shape_of("4b")).duration
    more = make_plan(made(**PLAN, rollout__updates=2, loss__kl_coef=0.001), shape_of("4b")).duration
    assert more.train_s == pytest.approx(1.5 * plain.train_s)


def test_judge_and_reward_model_count_in_gpu_hours() -> None:
    recipe = made(**PLAN, plan__judge_gpus=8, plan__reward_model_gpus=4)
    time = make_plan(recipe, shape_of("4b")).duration
    assert time.gpus == 44
    assert time.gpu_hours == pytest.approx(44 * time.hours)


def write_run(folder: Path, rows: list[dict[str, float]]) -> Path:
    (folder / "metrics").mkdir(parents=True)
    lines = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    (folder / "metrics" / "rollout.jsonl").write_bytes(lines)
    return folder


def row(step: int, time: float, attempt: int = 1, samples: int = 128) -> dict[str, float]:
    return {"step": step, "attempt": attempt, "time": time, "seconds": 300.0 + step,
            "length/mean": 9000.0, "samples": samples}  # fmt: skip


def test_the_first_five_steps_replace_the_stated_speed(tmp_path: Path) -> None:
    # Steps take 700 s; the sixth and later ones are not looked at.
    rows = [row(step, 700.0 * step) for step in range(5)] + [row(5, 90_000.0)]
    run = write_run(tmp_path / "run", rows)
    time = make_plan(made(**PLAN), shape_of("4b"), run).duration
    assert (time.rollout_s, time.train_s) == (302.0, 398.0)
    assert time.response_tokens == 9000.0
    assert str(run) in time.source
    assert time.hours == pytest.approx(200 * 700 / 3600)


def test_a_run_with_another_batch_size_is_scaled(tmp_path: Path) -> None:
    run = write_run(tmp_path, [row(0, 0.0, samples=64), row(1, 700.0, samples=64)])
    assert make_plan(made(**PLAN), shape_of("4b"), run).duration.step_s == pytest.approx(1400)


def test_the_gap_of_a_restart_is_no_step(tmp_path: Path) -> None:
    rows = [row(0, 0.0), row(1, 500.0), row(2, 50_000.0, attempt=2), row(3, 50_500.0, attempt=2)]
    assert observe(write_run(tmp_path, rows)).step_s == 500.0


@pytest.mark.parametrize("rows", [[], [row(0, 0.0)], [row(0, 0.0), row(1, 9.0, attempt=2)]])
def test_a_run_that_says_nothing_is_refused(tmp_path: Path, rows: list[dict[str, float]]) -> None:
    with pytest.raises(RunRecordsError, match="leave --run out"):
        observe(write_run(tmp_path, rows))


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunRecordsError, match="holds 0 steps"):
        observe(tmp_path)


@pytest.mark.parametrize(("model", "active"), [("4b", 4.02e9), ("8b", 7.57e9), ("30b", 3.04e9)])
def test_operations_of_a_short_forward_pass_are_two_a_parameter(model: str, active: float) -> None:
    # 8B: 8.19e9 less an embedding that is looked up; 30B-A3B: 3.35e9 active, less the same.
    assert forward_flops(shape_of(model), 0) == pytest.approx(2 * active, rel=0.01)


def test_attention_rules_a_long_sample() -> None:
    short, long = (forward_flops(shape_of("4b"), tokens) for tokens in (1000, 144_000))
    # 36 layers, 32 heads of 128: two operations for scores and two for values, half masked.
    assert long - short == 2 * 143_000 * 36 * 32 * 128
    assert training_flops(shape_of("4b"), 144_000, True) == 4 * long
    assert training_flops(shape_of("4b"), 144_000, False) == 3 * long


def test_the_stated_speed_is_shown_as_work_of_a_gpu() -> None:
    time = make_plan(made(**PLAN, loss__kl_coef=0.001), shape_of("4b")).duration
    assert time.train_tokens_per_gpu_s == pytest.approx(1000.0)
    assert time.train_flops_per_gpu_s == pytest.approx(1000 * time.flops_per_token)
