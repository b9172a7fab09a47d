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
    if folder.recipe.is_file() and _forbidden_changes(folder, recipe):
        # A first start that failed; data made for its recipe must not serve this one.
        _set_aside(folder.path)
    return folder, start_attempt(folder)


def check_run(root: Path, recipe: Recipe, fresh: bool) -> RunFolder:
    """The folder of `recipe`, free or ready to go on; raises as `open_run` does."""
    folder = RunFolder(root / recipe.name)
    if fresh and folder.path.exists():
        _set_aside(folder.path)
    if (done := _steps_done(folder)) is not None and recipe.rollout.steps <= done:
        raise RunFolderError(
            f"{folder.path} holds a finished run of {done} steps; add --fresh to set it aside, "
            "--set name=OTHER to keep both, or --set rollout.steps=MORE to train on"
        )
    if folder.recipe.is_file() and _has_begun(folder):
        _same_experiment(folder, recipe)
    return folder


def start_attempt(folder: RunFolder) -> int:
    """Open `attempts/N/` for the next attempt, after which the run counts as unfinished again;
    returns N."""
    folder.summary.unlink(missing_ok=True)
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


def _has_begun(folder: RunFolder) -> bool:
    """Whether a step was recorded or saved: a first start that failed binds nobody."""
    return any(folder.metrics.glob("*.jsonl")) or any(folder.checkpoints.glob("iter_*"))


def _steps_done(folder: RunFolder) -> int | None:
    """Steps of a finished run, None where it has not ended."""
    if not folder.summary.is_file():
        return None
    return int(json.loads(folder.summary.read_text())["steps"])


def _same_experiment(folder: RunFolder, recipe: Recipe) -> None:
    if changes := _forbidden_changes(folder, recipe):
        raise RunFolderError(
            f"{folder.path} was started with another recipe:\n{changes}\n"
            "add --fresh to start over, or --set name=OTHER to keep both"
        )


def _forbidden_changes(folder: RunFolder, recipe: Recipe) -> str:
    """A line for each key that differs from the stored recipe and may not."""
    old = _flat(load_recipe(folder.recipe).recipe.model_dump(mode="json"))
    new = _flat(recipe.model_dump(mode="json"))
    changed = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    free = (*MAY_CHANGE, "alarms")
    forbidden = [key for key in changed if not any(f"{key}.".startswith(f"{one}.") for one in free)]
    return "\n".join(f"  {k}: {old.get(k)!r} then, {new.get(k)!r} now" for k in forbidden)


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
