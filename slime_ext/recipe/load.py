"""Reading a recipe: TOML files in a chain, `--set` on top, each value with its origin.

One design choice: files are merged as flat dotted keys, so that "who said this" is one dictionary
lookup and a base never has to know which of its keys a recipe replaces.

Order, later wins: the site file named by the environment variable LONGRL_SITE, then `base` files
(at most three levels), the recipe, `--set section.key=value`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from slime_ext.recipe.errors import RecipeError, explain, locate
from slime_ext.recipe.schema import Recipe

MAX_BASES = 3


@dataclass(frozen=True, slots=True)
class Loaded:
    """A validated recipe and, for each dotted key that somebody set, who set it."""

    recipe: Recipe
    origins: dict[str, str]


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Loaded:
    """Read, merge and validate.

    Raises RecipeError, whose message names file, line, key and remedy.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for file in _chain(path):
        for key, value in _flatten(_read(file)).items():
            _put(values, origins, key, value, locate(file, key))
    for override in overrides:
        key, value = parse_override(override)
        for inner, leaf in _flatten({key: value}).items():
            _put(values, origins, inner, leaf, f"--set {override}")
    try:
        return Loaded(Recipe.model_validate(nest(values)), origins)
    except ValidationError as error:
        raise explain(error, Recipe, origins) from None


def dump_recipe(recipe: Recipe) -> str:
    """The resolved recipe as TOML; unset (None) keys are left out, TOML has no null."""
    return tomli_w.dumps(_without_none(recipe.model_dump(mode="json")))


def _chain(path: Path) -> list[Path]:
    """Files to merge, first the weakest."""
    chain = [path]
    while (base := _read(chain[-1], keep_base=True).get("base")) is not None:
        if len(chain) > MAX_BASES:
            raise RecipeError(f"{chain[-1]}: base goes deeper than {MAX_BASES} levels; merge some")
        file = (chain[-1].parent / str(base)).resolve()
        if not file.is_file():
            raise RecipeError(
                f"{locate(chain[-1], 'base')}: base = {base!r}: no such recipe file ({file})"
            )
        if file in [one.resolve() for one in chain]:
            raise RecipeError(f"{locate(chain[-1], 'base')}: base = {base!r} leads in a circle")
        chain.append(file)
    site = os.environ.get("LONGRL_SITE")
    return ([Path(site)] if site else []) + chain[::-1]


def _read(path: Path, keep_base: bool = False) -> dict[str, Any]:
    if not path.is_file():
        raise RecipeError(f"{path}: no such recipe file")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: not valid TOML: {error}") from None
    if not keep_base:
        table.pop("base", None)
    return table


def parse_override(text: str) -> tuple[str, Any]:
    """Key and value of `section.key=value`; the value is TOML, a bare word a string. Raises
    RecipeError."""
    key, equals, raw = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise RecipeError(f"--set {text}: write --set section.key=value")
    try:
        return key, tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        if raw and not any(mark in raw for mark in "\"'[]{}=\n"):
            return key, raw.strip()
        raise RecipeError(f"--set {text}: the value is not valid TOML") from None


def _put(values: dict[str, Any], origins: dict[str, str], key: str, value: Any, who: str) -> None:
    """Set one flat key; a table and a plain value under one name exclude each other."""
    clash = [old for old in values if old.startswith(key + ".") or key.startswith(old + ".")]
    for old in clash:
        del values[old], origins[old]
    values[key], origins[key] = value, who


def _flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            flat.update(_flatten(value, key + "."))
        else:
            flat[key] = value
    return flat


def nest(flat: dict[str, Any], levels: int = -1) -> dict[str, Any]:
    """Tables from dotted keys; with `levels`, a dot after that many belongs to the name."""
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        *sections, name = key.split(".", levels)
        table = nested
        for section in sections:
            table = table.setdefault(section, {})
        table[name] = value
    return nested


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    return value
