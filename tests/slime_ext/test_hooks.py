"""The hooks have the parameter names that slime's own contract tests ask of a plugin."""

from __future__ import annotations

import inspect

import pytest

from slime_ext import hooks

PARAMETERS = {
    "generate": ("args", "sample", "sampling_params", "evaluation"),
    "reward": ("args", "sample"),
    "keep_group": ("args", "samples"),
    "post_process_rewards": ("args", "samples"),
    "log_rollout": ("rollout_id", "args", "samples", "rollout_extra_metrics", "rollout_time"),
    "log_eval": ("rollout_id", "args", "data", "extra_metrics"),
    "before_train_step": (
        "args",
        "rollout_id",
        "step_id",
        "model",
        "optimizer",
        "opt_param_scheduler",
    ),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_hook_has_the_parameters_slime_names(name: str) -> None:
    parameters = inspect.signature(getattr(hooks, name)).parameters.values()
    named = tuple(p.name for p in parameters if p.kind is not p.VAR_KEYWORD)
    assert named == PARAMETERS[name]
