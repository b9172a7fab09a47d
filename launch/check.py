"""What `longrl check` looks at: recipe, tokenizer, every row, and the reward on three rows.

One design choice: the reward is tried on four made-up responses per row, from perfect to empty, so
that a reward of the user's own shows its parts, and its faults, before a rollout costs anything.
"""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from rewards.parsing.families import Family
from rewards.recorder import combine_safely, score_group_safely
from rewards.types import Response, Score, Status, Task
from slime_ext.data.check import CheckReport
from slime_ext.metrics.run_folder import RunFolder, write_recipe
from slime_ext.recipe.schema import Recipe
from slime_ext.rollout.runtime import Runtime, Split, load_runtime
from slime_ext.rollout.usable import inspect_rows

TRIED_ROWS = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """One made-up response to one row and what the reward says of it."""

    row: str
    response: str
    score: Score


@dataclass(frozen=True, slots=True)
class Check:
    """Everything that was looked at."""

    rows: dict[Split, CheckReport]
    trials: list[Trial]

    def failures(self) -> list[Trial]:
        """Trials on which the reward raised or gave no number."""
        return [trial for trial in self.trials if trial.score.total is None]


def check_recipe(recipe: Recipe) -> Check:
    """Check a resolved recipe; raises what loading tokenizer, rows or reward raises."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder(Path(scratch))
        write_recipe(folder, recipe)
        runtime = load_runtime(folder.recipe)
        rows = {split: inspect_rows(runtime, split) for split in runtime.rows}
        return Check(rows, asyncio.run(_try_reward(runtime)))


async def _try_reward(runtime: Runtime) -> list[Trial]:
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
