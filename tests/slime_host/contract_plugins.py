"""Our hooks in the surroundings that slime's plugin contract tests give a plugin.

One design choice: slime's tests call a plugin with bare args and empty samples, and check marks
that only their own reference plugins leave on `args`. Each name here supplies a recipe and a row,
calls our hook unchanged, and leaves that mark; `functools.wraps` makes the signature that slime
inspects our hook's own.
"""

from __future__ import annotations

import functools
import os
from argparse import Namespace
from typing import Any

from slime_ext import hooks
from slime_ext.rollout.data_source import RecipeDataSource

ROUTER = "LONGRL_CONTRACT_ROUTER"
"""host:port of the engine."""
RECIPE = "LONGRL_CONTRACT_RECIPE"


def _ready(args: Any) -> Any:
    args.longrl_recipe = os.environ[RECIPE]
    args.sglang_router_ip, _, args.sglang_router_port = os.environ[ROUTER].partition(":")
    return args


def _placed(sample: Any) -> Any:
    """`sample` with what our data source would have given it."""
    sample.group_index = 0
    sample.metadata = {"row": 0, "id": "0", "source": "lab", "split": "train"} | sample.metadata
    return sample


@functools.wraps(hooks.generate)
async def generate(args: Any, sample: Any, sampling_params: Any, evaluation: bool = False) -> Any:
    params = {"max_new_tokens": 16, **sampling_params}
    done = await hooks.generate(_ready(args), _placed(sample), params, evaluation)
    # The contract asks for a reward, and names no reward function.
    done.reward = await hooks.reward(args, done)
    return done


@functools.wraps(hooks.reward)
async def reward(args: Any, sample: Any, **kwargs: Any) -> Any:
    for one in sample if isinstance(sample, list) else [sample]:
        _placed(one)
    return await hooks.reward(_ready(args), sample, **kwargs)


@functools.wraps(hooks.keep_group)
def keep_group(args: Any, samples: Any, **kwargs: Any) -> Any:
    return hooks.keep_group(_ready(args), [_placed(one) for one in samples], **kwargs)


@functools.wraps(hooks.post_process_rewards)
def post_process_rewards(args: Any, samples: Any) -> Any:
    return hooks.post_process_rewards(_ready(args), [_placed(one) for one in samples])


@functools.wraps(hooks.log_rollout)
def log_rollout(rollout_id: int, args: Any, samples: Any, extra: Any, seconds: float) -> bool:
    args.logged_rollout_id = rollout_id
    return hooks.log_rollout(
        rollout_id, _ready(args), [_placed(one) for one in samples], extra, seconds
    )


@functools.wraps(hooks.log_eval)
def log_eval(rollout_id: int, args: Any, data: Any, extra: Any) -> bool:
    args.logged_eval_rollout_id = rollout_id
    for results in data.values():
        results["samples"] = [_placed(one) for one in results["samples"]]
    return hooks.log_eval(rollout_id, _ready(args), data, extra)


@functools.wraps(hooks.evaluate)
def evaluate(args: Any, rollout_id: int, data_source: Any, evaluation: bool = True) -> Any:
    return hooks.evaluate(_ready(args or Namespace()), rollout_id, data_source, evaluation)


class ReadyDataSource(RecipeDataSource):
    """Our data source; its constructor is inherited, so slime inspects ours."""

    def __new__(cls, args: Any) -> ReadyDataSource:
        _ready(args)
        return super().__new__(cls)
