"""What a run says of a checkpoint to people who have neither: recipe, data, figures, software.

One design choice: sections of the recipe are named that may be shown, not those that may not, and
every path in them is cut to its last name; hosts, accounts and keys are in the other sections.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from slime_ext.data.hub.names import is_hub, parse_hub
from slime_ext.data.hub.stored import read_manifest
from slime_ext.metrics.records import read_rows
from slime_ext.metrics.run_folder import MAY_CHANGE, RunFolder
from slime_ext.metrics.shown_config import shown_config
from slime_ext.recipe.load import load_recipe
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.checkpoints import iteration_of

SECTIONS = (
    *("name", "backend", "seed", "model", "data", "rollout", "reward", "outcome", "advantage"),
    *("loss", "optimiser", "eval", "extra"),
)
"""What decides what is learned."""
_PATH = re.compile(r"(?<![\w:/.~-])(?:~|\.{1,2})?/[^\s\"',;]*")
FIGURES = (
    *("reward/outcome", "reward/evidence_recall", "reward/format"),
    *("truncated_share", "length/mean"),
)
"""Evaluation metrics of the card, beside the one that chooses the best checkpoint."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What can be told of one checkpoint of a run."""

    recipe: Recipe
    iteration: int
    figures: dict[str, dict[str, tuple[float | None, float]]] = field(default_factory=dict)
    """Data set -> metric -> (before training, now)."""
    data: dict[str, str] = field(default_factory=dict)
    """Name of a data file -> SHA-256, or why there is none."""
    packages: dict[str, str] = field(default_factory=dict)
    """What the run trained with."""

    def shown(self) -> dict[str, Any]:
        """The sections of the recipe that may be shown, without unset keys, places and secrets. How
        a judge is reached says nothing of the model; those keys may change within a run."""
        table = shown_config(self.recipe)
        judge = table["outcome"].pop("judge")
        if self.recipe.outcome.kind == "judge":
            table["outcome"]["judge"] = {
                name: value
                for name, value in judge.items()
                if f"outcome.judge.{name}" not in MAY_CHANGE
            }
        kept: dict[str, Any] = _without_places({name: table[name] for name in SECTIONS})
        return kept


def run_of(checkpoint: Path) -> RunFolder | None:
    """The run whose checkpoint this is, by where it lies; None for one that lies elsewhere."""
    for folder in (checkpoint.parent.parent, checkpoint.parent.parent.parent):
        if (folder / "recipe.toml").is_file():
            return RunFolder(folder)
    return None


def gather(folder: RunFolder, checkpoint: Path) -> RunFacts:
    """Read what the run recorded. Raises RecipeError for a recipe that cannot be read; records that
    are not there are left out."""
    recipe = load_recipe(folder.recipe).recipe
    iteration = iteration_of(checkpoint)
    return RunFacts(
        recipe,
        iteration,
        _figures(recipe, folder, iteration),
        _data(recipe),
        _packages(folder),
    )


def own_version() -> str:
    """The version of this package."""
    return metadata.version("longrl")


def _figures(
    recipe: Recipe, folder: RunFolder, iteration: int
) -> dict[str, dict[str, tuple[float | None, float]]]:
    at: dict[tuple[str, int], dict[str, Any]] = {
        (row.get("dataset", "eval"), int(row["step"])): row
        for row in read_rows(folder.metrics / "eval.jsonl")
    }
    found = {}
    for dataset in {name for name, _ in at}:
        now, start = at.get((dataset, iteration), {}), at.get((dataset, 0), {})
        names = dict.fromkeys((recipe.checkpoint.best, *FIGURES))
        pairs = {name: (start.get(name), now[name]) for name in names if name in now}
        if pairs:
            found[dataset] = pairs
    return dict(sorted(found.items()))


def _data(recipe: Recipe) -> dict[str, str]:
    names = {"train": recipe.data.train}
    names |= {"eval": recipe.data.eval} if recipe.data.eval is not None else {}
    names |= recipe.data.eval_sets
    return {name: _hash(file, recipe.data.format) for name, file in names.items()}


def _hash(file: str, format: str) -> str:
    if is_hub(file):
        manifest = read_manifest(parse_hub(file), format)
        said = file.removeprefix("hub:")
        return f"{said}, SHA-256 {manifest.sha256}" if manifest else f"{said}, not at hand"
    path = Path(file)
    if not path.is_file():
        return f"{path.name}, not at hand"
    status = path.stat()
    return f"{path.name}, SHA-256 {_digest(path, status.st_size, status.st_mtime_ns)}"


@functools.lru_cache
def _digest(path: Path, size: int, mtime_ns: int) -> str:
    """Of a file as it is now, read once in a process that exports many checkpoints."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _packages(folder: RunFolder) -> dict[str, str]:
    """Of the newest attempt."""
    path = folder.path / "attempts" / str(folder.attempt()) / "env.json"
    if not path.is_file():
        return {}
    packages = json.loads(path.read_text()).get("packages", {})
    return {name: version for name, version in packages.items() if version}


def _without_places(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_places(inner) for key, inner in value.items() if inner is not None}
        return {key: inner for key, inner in kept.items() if inner not in ({}, [])}
    if isinstance(value, list):
        return [_without_places(inner) for inner in value]
    if isinstance(value, str):
        return _PATH.sub(lambda match: Path(match[0]).name, value)
    return value
