"""Every entry point a host loads, by import path; these paths are public API.

| host option                                     | value |
|-------------------------------------------------|-------|
| `--data-source-path`                          | `slime_ext.rollout.data_source.RecipeDataSource` |
| `--custom-generate-function-path`               | `slime_ext.hooks.generate` |
| `--custom-rm-path`                              | `slime_ext.hooks.reward` |
| `--dynamic-sampling-filter-path`                | `slime_ext.hooks.keep_group` |
| `--custom-reward-post-process-path`             | `slime_ext.hooks.post_process_rewards` |
| `--eval-function-path`                          | `slime_ext.hooks.evaluate` |
| `--custom-rollout-log-function-path`            | `slime_ext.hooks.log_rollout` |
| `--custom-eval-rollout-log-function-path`       | `slime_ext.hooks.log_eval` |
| `--custom-megatron-before-train-step-hook-path` | `slime_ext.hooks.before_train_step` |

A reward that scores whole groups needs `--group-rm` and the evaluation above.

One design choice: the functions here only unpack what the host passes; whatever decides what is
learned is in `rewards/` and `slime_ext/rollout/`, and the embedded loop calls the same functions.
"""

from __future__ import annotations

import math
from typing import Any

from slime_ext.host.loggers import log
from slime_ext.host.loops import run_async
from slime_ext.host.step_hook import stop_if_asked
from slime_ext.host.types import DynamicFilterOutput, RolloutFnEvalOutput, Sample
from slime_ext.metrics.aggregate import eval_metrics, rollout_metrics
from slime_ext.metrics.rollouts import rollout_rows
from slime_ext.rollout import engine_counts
from slime_ext.rollout.engine_address import note_engines
from slime_ext.rollout.evaluation import evaluate_sets
from slime_ext.rollout.kinds import own_kind, undeclared_fan_out
from slime_ext.rollout.lost import require_answers
from slime_ext.rollout.outage import undecided, wait_in_thread
from slime_ext.rollout.runtime import runtime_of
from slime_ext.rollout.scoring import group_has_signal, score_sample, score_samples, settle
from slime_ext.rollout.single_turn import single_turn


async def generate(
    args: Any, sample: Sample, sampling_params: dict[str, Any], evaluation: bool = False
) -> Sample | list[Sample]:
    """Sample one response for `sample`; the status says how it ended. A list for fan-out.

    The reward is NaN where a response was aborted, for all samples of its rollout: slime does not
    ask for their rewards then, and its metrics fail on None.
    """
    sample.reward = None
    runtime = runtime_of(args)
    note_engines(runtime, args)
    own = own_kind(runtime)
    sample_one = single_turn if own is None else own.generate
    done = await sample_one(runtime, args, sample, sampling_params, evaluation)
    if isinstance(done, list) and own is not None and not own.fan_out:
        raise undeclared_fan_out(runtime)
    samples = done if isinstance(done, list) else [done]
    if any(one.status == Sample.Status.ABORTED for one in samples):
        for one in samples:
            one.reward = math.nan
    return done


async def reward(args: Any, sample: Sample | list[Sample], **_: Any) -> float | list[float]:
    """Score one sample, or a list of them (the host sends both); NaN is "undetermined"."""
    runtime = runtime_of(args)
    if isinstance(sample, list):
        return await score_samples(runtime, sample)
    return await score_sample(runtime, sample)


def keep_group(args: Any, samples: list[Any], **_: Any) -> DynamicFilterOutput:
    """Drop a group that carries no signal, up to `filter_max_batches` batches of them a step.

    A group that waits for verdicts is kept: they are asked for again when the step is complete.
    The bound is ours: slime v0.2.4 would sample for ever, and the `keep_when_insufficient` of
    v0.3.1 keeps every group unless more are sampled at once than a step needs.
    """
    runtime = runtime_of(args)
    rollout = runtime.recipe.rollout
    group = flatten(samples)
    if rollout.filter == "none" or undecided(group) or group_has_signal(runtime, group):
        return DynamicFilterOutput(keep=True)
    if runtime.dropped >= rollout.prompts * rollout.filter_max_batches:
        return DynamicFilterOutput(keep=True)
    runtime.dropped += 1
    return DynamicFilterOutput(keep=False, reason="flat")


def post_process_rewards(args: Any, samples: list[Sample]) -> tuple[list[float], list[float]]:
    """Raw rewards and advantages of all samples of a step, in order."""
    runtime = runtime_of(args)
    settled = settle(runtime, samples)
    if runtime.step is not None:
        runtime.records.rollouts(runtime.step, rollout_rows(samples))
    return settled.raw, settled.advantages


def evaluate(
    args: Any, rollout_id: int, data_source: Any, evaluation: bool = True
) -> RolloutFnEvalOutput:
    """Evaluate on every held-out file of the recipe; what is logged of it, the log hook decides."""
    if not evaluation:
        raise ValueError(
            "slime_ext.hooks.evaluate only evaluates; give it to --eval-function-path and leave "
            "--rollout-function-path as it is"
        )
    runtime = runtime_of(args)
    if not runtime.eval_splits:
        raise ValueError(
            "the recipe names no held-out rows; set data.eval or data.eval_sets, or start without "
            "--eval-interval"
        )
    note_engines(runtime, args)
    return RolloutFnEvalOutput(data=run_async(evaluate_sets(runtime, args)))


def log_rollout(
    rollout_id: int,
    args: Any,
    samples: list[Any],
    rollout_extra_metrics: dict[str, Any] | None,
    rollout_time: float,
) -> bool:
    """Record and log our metrics of one step; False lets the host log its own as well.

    Also looks for alarms. Raises NothingSampledError where all responses were lost,
    JudgeOutageError as `wait_for_verdicts`.
    """
    runtime = runtime_of(args)
    runtime.step, runtime.dropped = rollout_id, 0
    flat = flatten(samples)
    require_answers(rollout_id, flat)
    wait_in_thread(runtime, flat)
    settled = settle(runtime, flat)
    metrics = rollout_metrics(flat, settled.counts) | {"seconds": rollout_time}
    metrics |= runtime.judge_counts() | engine_counts.take()
    metrics |= {f"host/{key}": float(value) for key, value in (rollout_extra_metrics or {}).items()}
    runtime.latest = metrics
    runtime.records.write("rollout", rollout_id, metrics)
    log(args, {f"rollout/{key}": value for key, value in metrics.items()}, rollout_id)
    runtime.alarms.look(rollout_id)
    if runtime.after_rollout is not None:
        runtime.after_rollout(rollout_id)
    return False


def log_eval(
    rollout_id: int,
    args: Any,
    data: dict[str, dict[str, Any]],
    extra_metrics: dict[str, Any] | None,
) -> bool:
    """Record and log our metrics of one evaluation; False lets the host log its own as well."""
    runtime = runtime_of(args)
    for name, results in data.items():
        samples = flatten(results["samples"])
        wait_in_thread(runtime, samples)
        metrics = eval_metrics(samples) | runtime.judge_counts()
        runtime.records.write("eval", rollout_id, metrics, dataset=name)
        logged = {f"eval/{name}/{key}": value for key, value in metrics.items()}
        log(args, logged, rollout_id, axis="eval/step")
    return False


def before_train_step(
    args: Any,
    rollout_id: int,
    step_id: int,
    model: Any,
    optimizer: Any,
    opt_param_scheduler: Any,
) -> None:
    """Save and end, on every rank, where the run was asked to stop; called by slime's trainer.

    Raises StoppedOnRequestError as `stop_if_asked`.
    """
    stop_if_asked(args, rollout_id, step_id, model, optimizer, opt_param_scheduler)


def flatten(samples: list[Any]) -> list[Sample]:
    """Leaf samples of the host's nesting (groups of samples, or of lists of samples)."""
    flat: list[Sample] = []
    for item in samples:
        flat.extend(flatten(item) if isinstance(item, list) else [item])
    return flat
