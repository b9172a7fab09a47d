"""The keys a run needs: their names, whether they are there, their values for a search.

One design choice: a recipe holds names only; values are looked up where they are needed and never
stored.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from slime_ext.errors import ExplainedError
from slime_ext.recipe.schema import Recipe


class SecretError(ExplainedError):
    """A key is missing, or lies where others can read it."""


def needed_secrets(recipe: Recipe) -> list[str]:
    """Names of the variables that hold keys this run needs."""
    names = list(recipe.cluster.secrets)
    if recipe.track.wandb == "online":
        names.append("WANDB_API_KEY")
    if recipe.outcome.kind == "judge":
        names += [one.key_env for one in recipe.outcome.judge.endpoints if one.key_env]
    return list(dict.fromkeys(names))


def require_secrets(recipe: Recipe) -> None:
    """Raise SecretError unless every key is in the environment or in the secrets file."""
    here = os.environ.keys() | _in_file(recipe).keys()
    missing = [name for name in needed_secrets(recipe) if name not in here]
    if missing:
        raise SecretError(
            f"these keys are not set: {', '.join(missing)}; export them, or write NAME=value lines "
            "into a file of mode 600 and name it in cluster.secrets_file"
        )


def secret_values(recipe: Recipe) -> list[str]:
    """Values of the run's keys that this machine knows, to be taken out of a text."""
    found = _in_file(recipe) if _file(recipe).is_file() else {}
    here = [os.environ[name] for name in needed_secrets(recipe) if name in os.environ]
    return [value for value in [*found.values(), *here] if value]


def _file(recipe: Recipe) -> Path:
    return Path(recipe.cluster.secrets_file or "/nowhere/none").expanduser()


def _in_file(recipe: Recipe) -> dict[str, str]:
    if recipe.cluster.secrets_file is None:
        return {}
    path = _file(recipe)
    if not path.is_file():
        raise SecretError(f"cluster.secrets_file = {str(path)!r} does not exist")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SecretError(f"others may read {path}; type: chmod 600 {path}")
    found = {}
    for line in path.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not name.lstrip().startswith("#"):
            found[name.removeprefix("export ").strip()] = value.strip().strip("\"'")
    return found
