"""A snapshot as something rich can draw.

One design choice: what needs somebody stands on top (alarms that hold, silence), figures below it,
history at the end, so that the first lines of a short terminal are the ones that matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from launch.watch.eta import duration, median_step, seconds_left
from launch.watch.figures import lines, throughput
from launch.watch.read import Row, Snapshot
from launch.watch.spark import sparkline

RECENT = 10
"""Steps of the median beside the newest figure."""
EVENTS = 6
SILENT = 5.0
"""Times the median step without a row, after which the silence is said."""
BAR = 30
HELD_OUT = ("accuracy", "evidence_recall", "format", "truncated_ratio", "response_length")


def frame(run: Snapshot, plain: bool = False) -> RenderableType:
    """The whole view; `plain` keeps it to ASCII."""
    parts: list[RenderableType] = [_head(run), _progress(run, plain)]
    if pace := _pace(run):
        parts.append(pace)
    parts += [Text(f"  ALARM {one['rule']}: {one['text']}", style="bold red") for one in run.alarms]
    if run.summary is not None:
        parts += [Text(), _summary(run.summary)]
    if run.rows:
        parts += [Text(), _figures(run, plain)]
    if run.evals:
        parts += [Text(), _evals(run)]
    parts += [Text(), *(_event(run, event) for event in run.events[-EVENTS:])]
    return Group(*parts)


def _head(run: Snapshot) -> Text:
    text = Text(run.name, style="bold")
    text.append(f"  {run.about}", style="dim")
    again = sum(1 for row in run.stamps if row.get("again"))
    restarts = max(0, run.attempt - 1)
    if restarts:
        text.append(f"  attempt {run.attempt}, {restarts} restart{'s' * (restarts > 1)}")
        text.append(f", {again} step{'s' * (again != 1)} done again")
    return text


def _progress(run: Snapshot, plain: bool) -> Text:
    full, empty = ("#", ".") if plain else ("█", "░")
    filled = BAR * run.done // run.steps if run.steps else 0
    text = Text(full * filled + empty * (BAR - filled), style="cyan")
    text.append(f" step {run.done} of {run.steps}", style="default")
    text.append("  " + ", ".join(_state(run)), style="default")
    return text


def _state(run: Snapshot) -> Iterator[str]:
    if run.ended:
        yield "finished" if run.summary is not None else "all steps done"
        return
    each = median_step(run.stamps)
    left = seconds_left(run.stamps, run.steps, run.now)
    if not run.stamps:
        yield "no step yet"
        if run.begun:
            yield f"attempt {run.attempt} began {duration(run.now - run.begun[run.attempt])} ago"
        return
    last = run.events[-1] if run.events else {}
    silent = run.now - float(run.stamps[-1]["time"])
    if last.get("kind") in ("stopped", "stuck") and last["time"] >= run.begun.get(run.attempt, 0.0):
        yield f"{last['kind']} {duration(run.now - last['time'])} ago"
        return
    if run.done >= run.steps:
        yield "all steps done"
    elif left is not None:
        yield f"{duration(left)} left"
    if run.done < run.steps and each is not None and silent > SILENT * each:
        yield f"nothing for {duration(silent)}"


def _pace(run: Snapshot) -> Text:
    facts = throughput(run.rows, median_step(run.stamps))
    return Text(", ".join(f"{name} {value}" for name, value in facts.items()), style="dim")


def _figures(run: Snapshot, plain: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("", no_wrap=True, overflow="crop")
    table.add_column("", no_wrap=True, overflow="crop")
    table.add_column("now", justify="right")
    table.add_column(f"median of {RECENT}", justify="right")
    table.add_column("", no_wrap=True, overflow="crop")
    before = ""
    for line in lines(run.rows):
        known = [figure for figure in line.figures if figure is not None]
        if known:
            group = line.group if line.group != before else ""
            before = line.group
            recent = line.form(median(known[-RECENT:]))
            curve = sparkline(line.figures, plain=plain)
            table.add_row(group, line.label, line.form(known[-1]), recent, curve)
    return table


def _evals(run: Snapshot) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("held out", "step", "outcome", "best", "at step"):
        table.add_column(title, justify="left" if title == "held out" else "right")
    for name, rows in run.evals.items():
        scored = [row for row in rows if row.get("reward/outcome") is not None]
        if scored:
            newest, best = scored[-1], max(scored, key=lambda row: float(row["reward/outcome"]))
            figures = [f"{row['reward/outcome']:.3f}" for row in (newest, best)]
            steps = [str(row["step"]) for row in (newest, best)]
            table.add_row(name, steps[0], figures[0], figures[1], steps[1])
    return table


def _summary(summary: Row) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(str(summary.get("figures_from", "summary")))
    table.add_column("start", justify="right")
    table.add_column("end", justify="right")
    for key in HELD_OUT:
        values = [summary.get(when, {}).get(key) for when in ("start", "end")]
        if any(value is not None for value in values):
            table.add_row(key, *("-" if value is None else f"{value:.3f}" for value in values))
    return table


def _event(run: Snapshot, event: Row) -> Text:
    ago = duration(max(0.0, run.now - float(event["time"])))
    text = Text(f"{ago:>12} ago  ", style="dim", no_wrap=True, overflow="crop")
    text.append(str(event["kind"]), style="default")
    text.append(f"  {_details(event)}", style="default")
    return text


def _details(event: Row) -> str:
    if "text" in event:
        return f"{event['rule']}: {event['text']}"
    known = {k: v for k, v in event.items() if k not in ("time", "kind", "attempt")}
    return "  ".join(f"{key} {_said(value)}" for key, value in known.items())


def _said(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
