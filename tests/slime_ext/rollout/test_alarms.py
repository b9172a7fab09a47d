"""The rollout log hook looks for alarms and asks the run to stop by the run folder's flag."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

import pytest

from slime_ext import hooks
from slime_ext.host.types import Sample
from slime_ext.metrics.records import read_rows
from slime_ext.metrics.stop_flag import StopFlag
from slime_ext.rollout.runtime import Runtime


def responses(status: Sample.Status) -> list[Sample]:
    """One group of four."""
    return [
        Sample(
            group_index=0,
            index=place,
            response="x",
            response_length=1,
            status=status,
            metadata={"row": 0, "split": "train"},
        )
        for place in range(4)
    ]


@pytest.mark.parametrize("status", [Sample.Status.TRUNCATED, Sample.Status.COMPLETED])
def test_the_hook_asks_for_a_stop_while_responses_are_cut(
    lab_runtime: Callable[..., Runtime], status: Sample.Status
) -> None:
    runtime = lab_runtime("alarms.truncation.window=2", "alarms.truncation.stop=true")
    args = Namespace(longrl_recipe=str(runtime.folder / "recipe.toml"))
    flag = StopFlag(runtime.folder)
    hooks.log_rollout(0, args, responses(status), None, 1.0)
    assert flag.asked() is None
    hooks.log_rollout(1, args, responses(status), None, 1.0)
    events = read_rows(runtime.folder / "events.jsonl")
    if status == Sample.Status.COMPLETED:
        assert flag.asked() is None
        assert events == []
    else:
        assert (flag.asked() or "").startswith("alarm truncation: 100%")
        assert [(event["kind"], event["step"]) for event in events] == [("alarm", 1)]
