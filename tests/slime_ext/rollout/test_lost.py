"""A step without any response stops the run; one with a single response goes on."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

import pytest

from slime_ext import hooks
from slime_ext.host.types import Sample
from slime_ext.rollout.lost import NothingSampledError
from slime_ext.rollout.runtime import Runtime


def lost(index: int, status: Sample.Status, finish: str) -> Sample:
    return Sample(
        group_index=0,
        index=index,
        response_length=1,
        status=status,
        metadata={"row": 0, "split": "train", "finish": finish},
    )


def test_the_error_counts_the_reasons(lab_runtime: Callable[..., Runtime]) -> None:
    args = Namespace(longrl_recipe=str(lab_runtime().folder / "recipe.toml"))
    samples = [lost(n, Sample.Status.FAILED, "http_400") for n in range(3)]
    samples.append(lost(3, Sample.Status.ABORTED, "engine_gone"))
    with pytest.raises(
        NothingSampledError, match=r"all 4 .* step 7 .*3 failed:http_400, 1 aborted:engine_gone"
    ):
        hooks.log_rollout(7, args, samples, None, 1.0)
    samples[0].status = Sample.Status.TRUNCATED
    hooks.log_rollout(7, args, samples, None, 1.0)
    hooks.log_rollout(8, args, [], None, 1.0)
