"""The recipe's reward on made-up responses to its own rows.

One design choice: it is tried on four responses a row, from perfect to empty, so that a reward of
the user's own shows its parts, and its faults, before a rollout costs anything.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from launch.preflight.context import Context
from launch.preflight.data import open_runtime, unreadable
from launch.preflight.finding import Area, Finding
from rewards.parsing.families import Family
from rewards.recorder import combine_safely, score_group_safely
from rewards.types import Response, Score, Status, Task
from slime_ext.data.errors import DataError
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.runtime import Runtime

TRIED_ROWS = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """One made-up response to one row and what the reward says of it."""

    row: str
    response: str
    score: Score


def check_trials(recipe: Recipe, context: Context) -> list[Finding]:
    """One finding, with a line for each trial."""
    area = Area("reward")
    if why := unreadable(context):
        area.skip("trials", f"{why}: the reward was not tried")
        return area.findings
    if context.offline and recipe.outcome.kind == "judge":
        area.skip("trials", "the outcome asks a judge: --offline")
        return area.findings
    try:
        with tempfile.TemporaryDirectory() as scratch:
            runtime = _opened(recipe, scratch, area)
            trials = asyncio.run(try_reward(runtime)) if runtime else []
    except DataError:
        area.skip("trials", "the rows cannot be read (see data): the reward was not tried")
        return area.findings
    if not runtime:
        return area.findings
    undetermined = [trial for trial in trials if trial.score.total is None]
    if undetermined:
        reasons = ", ".join(sorted({str(trial.score.reason) for trial in undetermined}))
        area.fail(
            "trials",
            f"{len(undetermined)} of {len(trials)} made-up responses got no number ({reasons})",
            "the log says why; a reward must give every response a number",
            list(_lines(trials)),
        )
    else:
        said = f"{len(trials)} made-up responses got a number each"
        area.ok("trials", said, list(_lines(trials)))
    return area.findings


def _opened(recipe: Recipe, scratch: str, area: Area) -> Runtime | None:
    """The run's parts; None, with a finding, for a judge without key or endpoint."""
    try:
        return open_runtime(recipe, scratch)
    except DataError:
        raise
    except ValueError as error:
        area.fail("trials", str(error), "correct [outcome.judge]")
        return None


async def try_reward(runtime: Runtime) -> list[Trial]:
    """Score the made-up responses to the first rows, as the run would."""
    trials = []
    for position in range(min(TRIED_ROWS, len(runtime.rows["train"]))):
        task = runtime.task("train", position)
        responses = made_up(task, runtime.family)
        scores = await score_group_safely(runtime.reward, task, list(responses.values()))
        for name, score in zip(responses, scores, strict=True):
            trials.append(Trial(task.id, name, score))
    group = combine_safely(runtime.reward, [trial.score for trial in trials])
    return [replace(trial, score=score) for trial, score in zip(trials, group, strict=True)]


def made_up(task: Task, family: Family) -> dict[str, Response]:
    """A perfect response, one without evidence, an empty one and a truncated one."""
    entities = " ".join(names[0] for names in task.gold_entities)
    chunks = " ".join(f"<CHUNK_{number}>" for number in task.gold_chunks)
    opening = f"{family.open_tag} {entities} {family.close_tag} " if family.thinking else ""
    answer = f"<answer> {task.answer} </answer>"
    evidence = f"<useful_chunks> {chunks} </useful_chunks>"
    texts: dict[str, tuple[str, Status]] = {
        "gold": (f"{opening}{entities} {evidence} {answer}", "completed"),
        "answer only": (f"{opening}<useful_chunks> </useful_chunks> {answer}", "completed"),
        "empty": ("", "completed"),
        "truncated": (f"{opening}{entities}", "truncated"),
    }
    return {
        name: Response(text, status, family.stop_tokens[0] if status == "completed" else None)
        for name, (text, status) in texts.items()
    }


def _lines(trials: Sequence[Trial]) -> Iterator[str]:
    row = None
    for trial in trials:
        if trial.row != row:
            row = trial.row
            yield f"  {row}"
        total = "undetermined" if trial.score.total is None else f"{trial.score.total:.3f}"
        parts = "  ".join(f"{name} {value:.2f}" for name, value in trial.score.parts.items())
        reason = f"  [{trial.score.reason}]" if trial.score.reason else ""
        yield f"    {trial.response:<12} {total:>12}{reason}  {parts}"
