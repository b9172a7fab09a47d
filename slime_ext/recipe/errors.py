"""Recipe errors that say where a value stands and what to type instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from slime_ext.errors import ExplainedError, nearest


class RecipeError(ExplainedError, ValueError):
    """A recipe that cannot be used; the message names file, line, key and remedy."""


def locate(path: Path, key: str) -> str:
    """`FILE:LINE` of the dotted `key` in a TOML file, or just `FILE` where it is not found."""
    section, _, name = key.rpartition(".")
    current = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.strip()
        if text.startswith("["):
            current = text.strip("[] ")
        elif current == section and text.partition("=")[0].strip() == name:
            return f"{path}:{number}"
    return str(path)


def explain(error: ValidationError, model: type[BaseModel], origins: dict[str, str]) -> RecipeError:
    """One line for each problem pydantic found, with the place its value came from."""
    lines = []
    for problem in error.errors():
        key = ".".join(str(part) for part in problem["loc"])
        where = _origin(key, origins)
        what = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            *section, name = [str(part) for part in problem["loc"]]
            what = f"unknown key; {nearest(name, _fields(model, section))}"
        elif problem["type"] == "missing":
            what = f"this key is required and has no default; add {key} to the recipe"
        else:
            given = problem["input"]
            what = what if isinstance(given, dict) else f"{what} (got {given!r})"
        lines.append(f"{where + ': ' if where else ''}{key or 'recipe'}: {what}")
    return RecipeError("\n".join(lines))


def _origin(key: str, origins: dict[str, str]) -> str | None:
    """Who set `key`, a key above it, or (for a whole section) one below it, the strongest last."""
    parts = key.split(".")
    above = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
    below = [name for name in origins if name.startswith(f"{key}.")]
    named = (origins[name] for name in above + below[::-1] if name in origins)
    # A rule between two sections has no key of its own: any file of the chain will do.
    return next(named, None) or (next(iter(origins.values()), None) if not key else None)


def _fields(model: type[BaseModel], section: list[str]) -> list[str]:
    """Names of the fields of the section reached from `model` by `section`."""
    for name in section:
        field = model.model_fields.get(name)
        inner = _model_of(field.annotation) if field else None
        if inner is None:
            return []
        model = inner
    return list(model.model_fields)


def _model_of(annotation: Any) -> type[BaseModel] | None:
    options = [annotation, *get_args(annotation)]
    return next((a for a in options if isinstance(a, type) and issubclass(a, BaseModel)), None)
