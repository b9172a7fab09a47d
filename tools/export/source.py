"""Which checkpoint is exported, and as which model.

One design choice: a run's newest complete checkpoint is judged by its files, as on resuming; newer
ones that are passed over are named with the reason, so that an older step is never exported in
silence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slime_ext.errors import ExplainedError
from slime_ext.metrics.run_folder import RunFolder
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.checkpoints import checkpoints, incomplete
from slime_ext.weights.torch_dist import METADATA

from .configs import CONFIG
from .run_facts import run_of


class SourceError(ExplainedError, ValueError):
    """No checkpoint, or no model it could be of, was found; says what to name instead."""


@dataclass(frozen=True, slots=True)
class Source:
    """What to export."""

    checkpoint: Path
    reference: Path
    """Folder of the model that was trained: its config, tokenizer and other side files."""
    run: RunFolder | None
    rope_scaling: dict[str, Any] | None
    """What the run's recipe put in place of the model's own."""
    passed_over: tuple[str, ...]
    """Newer checkpoints that are not complete, each with the reason."""


def find_source(asked: Path, reference: Path | None = None) -> Source:
    """The checkpoint meant by a run folder, a folder of checkpoints or a checkpoint, and its model:
    `reference`, or that of the run's recipe.

    Raises SourceError where there is none, FileNotFoundError where `asked` is no folder.
    """
    checkpoint, passed_over = find_checkpoint(asked)
    run = run_of(checkpoint)
    recipe = load_recipe(run.recipe).recipe if run else None
    return Source(
        checkpoint=checkpoint,
        reference=reference or _model(checkpoint, recipe),
        run=run,
        rope_scaling=recipe.model.rope_scaling if recipe else None,
        passed_over=tuple(passed_over),
    )


def find_checkpoint(asked: Path) -> tuple[Path, list[str]]:
    """The newest complete checkpoint of a run or folder of checkpoints, and why newer ones are
    passed over; a checkpoint itself as it is. Raises as `find_source`."""
    if not asked.is_dir():
        raise FileNotFoundError(f"{asked} is no folder; name a run, or a checkpoint iter_NNNNNNN")
    if (asked / METADATA).is_file() or any(asked.glob("*.distcp")):
        return asked, []
    root = RunFolder(asked).checkpoints if (asked / "recipe.toml").is_file() else asked
    passed_over: list[str] = []
    for folder in reversed(checkpoints(root)):
        fault = incomplete(folder)
        if fault is None:
            return folder, passed_over
        passed_over.append(f"{folder.name}: {fault}")
    if passed_over:
        raise SourceError(f"no checkpoint of {root} is complete: {'; '.join(passed_over)}")
    raise SourceError(
        f"{root} holds no checkpoint; name a run folder whose checkpoints/ has folders "
        "iter_NNNNNNN, or one of those folders"
    )


def _model(checkpoint: Path, recipe: Recipe | None) -> Path:
    if recipe is None:
        raise SourceError(
            f"{checkpoint} does not lie in a run, so nothing says of which model it is; name the "
            "folder of the model that was trained with --reference"
        )
    folder = Path(recipe.model.path)
    if not (folder / CONFIG).is_file():
        raise SourceError(
            f"the run's model.path {folder} holds no {CONFIG} here; name the folder of the model "
            "that was trained with --reference"
        )
    return folder
