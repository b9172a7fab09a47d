"""The door to slime opens on the slime at hand, wherever it keeps its modules."""

from __future__ import annotations

import asyncio
import importlib
import pkgutil
import threading
from argparse import Namespace
from typing import Any

import pytest

import slime_ext.host
from slime_ext.host import features, loggers, loops, standins, types

NAMES = [module.name for module in pkgutil.iter_modules(slime_ext.host.__path__)]


@pytest.mark.parametrize("name", NAMES)
def test_every_part_of_the_door_is_importable(name: str) -> None:
    importlib.import_module(f"slime_ext.host.{name}")


def test_the_types_are_slimes_own() -> None:
    assert types.HAVE_SLIME
    for name in types.__all__:
        if name != "HAVE_SLIME":
            own = getattr(types, name)
            assert own.__module__.startswith("slime.")
            assert own is not getattr(standins, name)


def test_metrics_arrive_in_the_one_wandb_run_of_slime(monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb

    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(wandb, "log", lambda metrics, **_: seen.append(metrics))
    monkeypatch.setattr(loggers, "_sink", None)
    args = Namespace(use_wandb=True, use_tensorboard=False)
    loggers.log(args, {"rollout/undetermined": 2.0}, 5)
    loggers.log(args, {"eval/eval/reward/outcome": 0.5}, 7, axis="eval/step")
    assert seen == [
        {"rollout/undetermined": 2.0, "rollout/step": 5},
        {"eval/eval/reward/outcome": 0.5, "eval/step": 7},
    ]


def test_the_logger_is_one_of_the_two_we_know() -> None:
    module = features.logging_module()
    assert module.__name__ in features.LOGGING_MODULES
    assert callable(module.log)


def test_work_of_a_plain_hook_runs_on_slimes_own_loop() -> None:
    async def where() -> tuple[asyncio.AbstractEventLoop, int]:
        return asyncio.get_running_loop(), threading.get_ident()

    (first, thread), (second, _) = loops.run_async(where()), loops.run_async(where())
    assert first is second
    assert thread != threading.get_ident()
