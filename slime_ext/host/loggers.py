"""Where metrics go beside our own records: slime's logger, or the sink of the embedded loop.

One design choice: under slime every value passes through slime's own `log`, so that there is one
W&B run and one step axis; we never call wandb there ourselves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from slime_ext.host.features import logging_module
from slime_ext.host.types import HAVE_SLIME

Sink = Callable[[Mapping[str, float]], None]
"""Receives the metrics of one step, the step's number among them under the name of its axis."""

_sink: Sink | None = None


def set_sink(sink: Sink | None) -> None:
    """Choose where `log` sends metrics when slime does not run the loop."""
    global _sink
    _sink = sink


def log(args: Any, metrics: Mapping[str, float], step: int, axis: str = "rollout/step") -> None:
    """Log `metrics` at `step` on the step axis `axis` (slime_ext/metrics/wandb_run.py, AXES)."""
    if _sink is not None:
        _sink({**metrics, axis: step})
    elif HAVE_SLIME and hasattr(args, "use_wandb"):
        # The embedded loop may run where slime is installed; its args are not slime's.
        logging_module().log(args, {**metrics, axis: step}, step_key=axis)


def alert(title: str, text: str) -> None:
    """Send a W&B alert where this process has an active run, ours or slime's."""
    run = getattr(sys.modules.get("wandb"), "run", None)
    if run is not None:
        run.alert(title=title, text=text, level="WARN")
