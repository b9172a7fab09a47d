"""slime's rollout manager without Ray around it, and the embedded backend's half to compare with.

One design choice: the manager's own class is taken out of its Ray wrapper and given what its
constructor would have made for engines from outside, so its methods run here unchanged.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
from typing import Any

import pytest

from slime_ext.embedded.loop import host_args
from slime_ext.embedded.rollouts import Rollouts, Step
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.rollout.data_source import RecipeDataSource
from slime_ext.rollout.runtime import load_runtime
from tests.slime_host.lab import slime_args


def bare_manager(args: argparse.Namespace) -> Any:
    """The rollout manager of slime for `args`, in this process."""
    from slime.ray.rollout import RolloutManager
    from slime.utils.http_utils import init_http_client
    from slime.utils.misc import SingletonMeta, load_function

    # slime keeps the first args it ever saw.
    SingletonMeta._instances.clear()
    init_http_client(args)
    kind = RolloutManager.__ray_metadata__.modified_class
    manager = object.__new__(kind)
    manager.args = args
    manager.data_source = load_function(args.data_source_path)(args)
    manager.generate_rollout = load_function(args.rollout_function_path)
    manager.eval_generate_rollout = load_function(args.eval_function_path)
    manager.custom_reward_post_process_func = load_function(args.custom_reward_post_process_path)
    manager.custom_convert_samples_to_train_data_func = None
    manager._health_monitors = []
    return manager


def one_rollout(manager: Any, rollout_id: int = 0) -> tuple[list[Any], dict[str, Any]]:
    """What slime's `RolloutManager.generate` does up to the split over ranks: the flat samples, and
    the train data."""
    samples, metrics = manager._get_rollout_data(rollout_id=rollout_id)
    log_rollout_data(rollout_id, manager.args, samples, metrics, 1.0)
    return samples, manager._convert_samples_to_train_data(samples)


def log_rollout_data(*arguments: Any) -> None:
    """slime's own logging of a rollout, which calls our hook; it moved after v0.3.1."""
    _moved("_log_rollout_data", "log_rollout_data")(*arguments)


def log_eval_rollout_data(*arguments: Any) -> Any:
    """The same for an evaluation."""
    return _moved("_log_eval_rollout_data", "log_eval_rollout_data")(*arguments)


def embedded_rollout(folder: RunFolder, url: str, rollout_id: int = 0) -> Step:
    """The step that the embedded backend makes of the run in `folder` with the engine at `url`."""
    runtime = load_runtime(folder.recipe)
    args = host_args(runtime.recipe, folder)
    args.sglang_router_ip, _, args.sglang_router_port = url.removeprefix("http://").partition(":")
    rollouts = Rollouts(args, runtime, RecipeDataSource(args))
    return asyncio.run(rollouts.train(rollout_id))


def assert_same_training(run: RunFolder, twin: RunFolder, url: str, *flags: str) -> dict[str, Any]:
    """Roll `run` out through slime, given `flags`, and `twin` through the embedded loop; what is
    taught must be the same. Returns slime's train data.
    """
    samples, data = one_rollout(bare_manager(slime_args(run, url, *flags)))
    step = embedded_rollout(twin, url)
    assert len(samples) == len(step.samples)
    assert data["tokens"] == [sample.tokens for sample in step.samples]
    assert data["response_lengths"] == [sample.response_length for sample in step.samples]
    assert data["loss_masks"] == [sample.loss_mask for sample in step.samples]
    assert data["rewards"] == pytest.approx(step.advantages, nan_ok=True)
    assert data["raw_reward"] == pytest.approx(step.raw, nan_ok=True)
    assert data["sample_indices"] == [sample.index for sample in step.samples]
    for ours, theirs in zip(data["rollout_log_probs"], step.samples, strict=True):
        assert ours == pytest.approx(theirs.rollout_log_probs, abs=1e-5)
    return data


def _moved(old: str, new: str) -> Any:
    module = importlib.import_module("slime.ray.rollout")
    if hasattr(module, old):
        return getattr(module, old)
    return getattr(importlib.import_module("slime.observability.rollout_metrics"), new)
