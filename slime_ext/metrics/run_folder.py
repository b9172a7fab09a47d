"""The run folder `runs/NAME/`: a function of the run's name, no time stamp.

One design choice: the folder itself is the state of a run. Started again, a run that has not ended
goes on from its newest checkpoint as the next attempt; `fresh` sets the old folder aside instead.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from slime_ext.errors import ExplainedError
from slime_ext.recipe.load import dump_recipe, load_recipe
from slime_ext.recipe.schema import Recipe

_JUDGE_OPERATION = (
    "endpoints",
    "concurrency",
    "request_timeout_s",
    "attempts",
    "deadline_s",
    "breaker_failures",
    "breaker_reset_s",
    "cache",
    "max_no_verdict_share",
    "retry_every_s",
    "outage_limit_s",
)
_PLACE = (
    "partition",
    "account",
    "time",
    "exclusive",
    "sbatch",
    "requeue",
    "signal_s",
    "container",
    "image",
    "mounts",
    "setup",
    "python",
    "interface",
    "environment",
    "secrets",
    "secrets_file",
    "ready_timeout_s",
)
MAY_CHANGE = {
    "rollout.steps",
    "rollout.request_timeout_s",
    "eval.every",
    "checkpoint.every",
    "checkpoint.keep",
    "checkpoint.keep_best",
    "checkpoint.best",
    "watchdog.factor",
    "watchdog.minimum_s",
    "track.wandb",
    *(f"outcome.judge.{key}" for key in _JUDGE_OPERATION),
    *(f"cluster.{key}" for key in _PLACE),
}
"""Keys a resumed run may change: how long it runs and where its judge is reached; all
of [alarms] too, which changes nothing that is learnt. Any other would make the halves two different
experiments."""
PACKAGES = ("longrl", "torch", "megatron-core", "transformers", "sglang", "numpy", "pydantic")


class RunFolderError(ExplainedError, RuntimeError):
    """The run folder cannot be used as asked; the message says what to type instead."""


class RunFolder:
    """Paths inside one run folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recipe = path / "recipe.toml"
        self.checkpoints = path / "checkpoints"
        self.metrics = path / "metrics"
        self.hf = path / "hf"
        self.summary = path / "summary.json"

    def attempt(self) -> int:
        """Number of the newest attempt, 0 where there is none."""
        numbers = [int(p.name) for p in (self.path / "attempts").glob("*") if p.name.isdigit()]
        return max(numbers, default=0)

    def write_json(self, path: Path, value: Any) -> None:
        """Write under a temporary name, then rename."""
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(value, indent=2) + "\n")
        partial.replace(path)


def open_run(root: Path, recipe: Recipe, fresh: bool) -> tuple[RunFolder, int]:
    """Create the folder of `recipe`, or open it to go on; returns it with the attempt's number.

    Raises RunFolderError where the run has ended, or was started with another recipe.
    """
    folder = check_run(root, recipe, fresh)
    return folder, start_attempt(folder)


def check_run(root: Path, recipe: Recipe, fresh: bool) -> RunFolder:
    """The folder of `recipe`, free or ready to go on; raises as `open_run` does."""
    folder = RunFolder(root / recipe.name)
    if fresh and folder.path.exists():
        _set_aside(folder.path)
    if folder.summary.is_file():
        raise RunFolderError(
            f"{folder.path} holds a finished run; add --fresh to set it aside, or "
            "--set name=OTHER to keep both"
        )
    if folder.recipe.is_file():
        _same_experiment(folder, recipe)
    return folder


def start_attempt(folder: RunFolder) -> int:
    """Open `attempts/N/` for the next attempt; returns N."""
    attempt = folder.attempt() + 1
    where = folder.path / "attempts" / str(attempt)
    (where / "logs").mkdir(parents=True)
    folder.write_json(where / "env.json", _environment())
    return attempt


def write_recipe(folder: RunFolder, recipe: Recipe) -> None:
    """Store the resolved recipe, from which every process of the run reads."""
    partial = folder.recipe.with_suffix(".partial")
    partial.write_text(dump_recipe(recipe))
    partial.replace(folder.recipe)


def _set_aside(path: Path) -> Path:
    """Rename an old run folder to the first free `NAME.N`."""
    number = 1
    while (aside := path.with_name(f"{path.name}.{number}")).exists():
        number += 1
    return path.rename(aside)


def _same_experiment(folder: RunFolder, recipe: Recipe) -> None:
    old = _flat(load_recipe(folder.recipe).recipe.model_dump(mode="json"))
    new = _flat(recipe.model_dump(mode="json"))
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    free = (*MAY_CHANGE, "alarms")
    forbidden = [key for key in changed if not any(f"{key}.".startswith(f"{one}.") for one in free)]
    if forbidden:
        lines = "\n".join(f"  {k}: {old.get(k)!r} then, {new.get(k)!r} now" for k in forbidden)
        raise RunFolderError(
            f"{folder.path} was started with another recipe:\n{lines}\n"
            "add --fresh to start over, or --set name=OTHER to keep both"
        )


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat


def _environment() -> dict[str, Any]:
    """Versions and place of this attempt; names of environment variables only, never values."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "host": platform.node(),
        "cpus": os.cpu_count(),
        "packages": versions,
        "variables": sorted(os.environ),
    }
