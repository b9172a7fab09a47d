"""What a person sees of an embedded run: figures beside the progress bar, a table at the end.

One design choice: without a terminal the bar is silent and every tenth step prints one plain line,
so that a log file stays readable.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from slime_ext.metrics.summary import FIGURES

LABELS = {
    "accuracy": "answer accuracy",
    "evidence_recall": "evidence recall",
    "format": "format kept",
    "truncated_ratio": "truncated",
    "response_length": "response length (tokens)",
}
LINE = ("accuracy", "evidence_recall", "format")
"""Figures shown at every step, beside the reward."""


def show_step(bar: Any, step: int, rollout: Mapping[str, float], loss: float) -> None:
    """Put the newest figures beside the bar, or print them where the bar is silent."""
    keys = {"reward": "reward/total", **{k: FIGURES[k] for k in FIGURES if k in LINE}}
    figures = {name: f"{rollout[key]:.2f}" for name, key in keys.items() if key in rollout}
    bar.set_postfix(figures)
    if bar.disable and (step % 10 == 0 or step + 1 == bar.total):
        text = "  ".join(f"{key} {value}" for key, value in figures.items())
        print(f"step {step}  {text}  loss {loss:+.4f}", flush=True)


def show_summary(summary: dict[str, Any], folder: Path) -> None:
    """The table at the end of a run: held-out figures at its start and end."""
    table = Table(title=f"{summary['name']}: held-out figures, step 0 and {summary['steps']}")
    table.add_column("")
    table.add_column("start", justify="right")
    table.add_column("end", justify="right")
    for key, label in LABELS.items():
        values = [summary[when].get(key) for when in ("start", "end")]
        digits = 1 if key == "response_length" else 3
        cells = ["-" if value is None else f"{value:.{digits}f}" for value in values]
        table.add_row(label, *cells)
    console = Console()
    console.print(table)
    console.print(
        f"{summary['steps']} steps, {summary['cpu_seconds']:.0f} CPU-seconds of rollout and "
        f"training, seed {summary['seed']}. Records: {folder}. Model: {folder / 'hf'}",
        highlight=False,
    )
