"""A script's command line as a recipe, and what became of each of its flags.

One design choice: the recipe is turned back into slime's command line and compared with the script,
so that the report is about the command that will run and not about the tables here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from launch.argument_groups.extra import STANDING
from launch.arguments import slime_arguments
from launch.flags.check import Given as GivenFlag
from launch.flags.check import problem_of, split
from launch.flags.lists import Flag, host_flags
from launch.flags.without_effect import without_effect
from launch.models.facts import facts_shape, known_models
from launch.script_import.derived import Given, derive
from launch.script_import.expand import UNKNOWN
from launch.script_import.keys import (
    DEFAULTS,
    JSON_KEYS,
    KEYS,
    LIST_KEYS,
    NOT_CARRIED,
    PATH_KEYS,
    SAME_AS,
)
from launch.script_import.read import Script, ScriptError
from slime_ext.errors import ExplainedError
from slime_ext.recipe.errors import explain
from slime_ext.recipe.load import nest
from slime_ext.recipe.schema import Recipe

SIZES = ("--num-layers", "--hidden-size", "--ffn-hidden-size", "--rotary-base")
"""By which a shipped model is told where its folder has another name."""


@dataclass(slots=True)
class Imported:
    """The recipe, as the table of a TOML file, and the report: (flag, what became of it) lines."""

    table: dict[str, Any]
    recipe: Recipe
    keys: list[tuple[str, str]] = field(default_factory=list)
    """Became a recipe key."""
    same: list[tuple[str, str]] = field(default_factory=list)
    """Said again by what LongRL gives anyway."""
    no_effect: list[tuple[str, str]] = field(default_factory=list)
    """Never had effect under slime."""
    fork: list[tuple[str, str]] = field(default_factory=list)
    """Known to the LongTraceRL fork only, or to nobody."""
    extra: list[tuple[str, str]] = field(default_factory=list)
    """Passed on under [extra]."""
    dropped: list[tuple[str, str]] = field(default_factory=list)
    """Not carried over."""
    fill_in: list[tuple[str, str]] = field(default_factory=list)
    """Values that only the script's machine knows."""


def convert(
    script: Script, name: str, version: str, overrides: Mapping[str, Any] | None = None
) -> Imported:
    """The recipe for host `version`, called `name` unless the script names its group; `overrides`
    are recipe keys that go before what the script says.

    Raises ScriptError where a required key is in no flag.
    """
    given: Given = {}
    for one in split(script.argv):
        given[one.flag] = one.values
    values, sources, fill_in = _values(given)
    values["name"] = re.sub(r"[^A-Za-z0-9._-]+", "-", values.get("track.group") or name)
    values["backend"], values["slime.version"] = "slime", version
    if "reward.kind" not in values:
        values["reward.kind"] = "outcome"
        fill_in.append(("reward.kind", "no reward of LongRL's is in the flags; outcome was taken"))
    facts = _facts(given)
    if facts is not None:
        values["model.facts"] = facts
    values |= overrides or {}
    recipe = _recipe(values)
    if {"--source-config-path", "--rm-url", "--rm-type", "--custom-rm-path"} & given.keys():
        fill_in.append(("outcome", "who judged answers is not in the flags; see README, A judge"))
    found = Imported({}, recipe, fill_in=fill_in)
    found.keys = [(_said(flag, given), key) for flag, key in sources.items()]
    emitted = _emitted(recipe, fill_in)
    extra = {
        flag: values
        for flag, values in given.items()
        if not _accounted(flag, given, sources, emitted, found)
    }
    host = host_flags(version)
    for flag, words in extra.items():
        known = host.flags[flag]
        section = known.owner if known.owner in ("megatron", "sglang") else "slime"
        key = f"extra.{section}.{flag.removeprefix('--').removeprefix('sglang-')}"
        values[key] = _typed(words, known)
        found.extra.append((_said(flag, given), key))
    found.recipe = _recipe(values)
    found.table = _table(values, found.recipe)
    return found


def _values(given: Given) -> tuple[dict[str, Any], dict[str, str], list[tuple[str, str]]]:
    """Recipe keys with their values, the key of each flag, and what a person has to fill in."""
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    fill_in: list[tuple[str, str]] = []
    pairs: list[tuple[str, Any, tuple[str, ...]]] = [
        (key, _read(key, given[flag]), (flag,)) for flag, key in KEYS.items() if flag in given
    ]
    for key, value, flags in [*pairs, *derive(given)]:
        sources |= {flag: key for flag in flags if flag in given}
        unknown = UNKNOWN.search(json.dumps(value))
        if unknown:
            fill_in.append((key, json.dumps(value)))
            if key not in PATH_KEYS:
                continue
        values[key] = value
    return values, sources, fill_in


def _read(key: str, words: tuple[str, ...]) -> Any:
    if key in LIST_KEYS:
        return list(words)
    text = words[0] if words else ""
    if key not in JSON_KEYS:
        return text
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ScriptError(f"{key}: the script gives {text!r}, which is no JSON: {error}") from None


def _facts(given: Given) -> str | None:
    """The shipped model the script means: by the folder's name, else by its sizes."""
    name = Path("".join(given.get("--hf-checkpoint", ()))).name
    if name in known_models():
        return name
    asked = ["".join(given.get(flag, ())) for flag in SIZES]
    fits = []
    for model in known_models():
        shape = facts_shape(model)
        sizes = (shape.num_layers, shape.hidden_size, shape.ffn_size, int(shape.rope_theta))
        if [str(size) for size in sizes] == asked:
            fits.append(model)
    return fits[0] if len(fits) == 1 else None


def _recipe(values: dict[str, Any]) -> Recipe:
    try:
        return Recipe.model_validate(nest(values, levels=2))
    except ValidationError as error:
        raise ScriptError(
            f"script and --set do not make a recipe:\n{explain(error, Recipe, {})}\n"
            "say what is missing with --set section.key=value"
        ) from None


def _emitted(recipe: Recipe, fill_in: list[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    try:
        groups = slime_arguments(recipe, Path("runs") / recipe.name)
    except ExplainedError as error:
        open_ = [(key, said) for key, said in fill_in if key not in PATH_KEYS]
        names = {one.group(1) for _, said in open_ for one in UNKNOWN.finditer(said)}
        if not any(names):
            raise
        stated = ", ".join(f"{key} = {said}" for key, said in open_ if UNKNOWN.search(said))
        define = " ".join(f"--define {name}=VALUE" for name in sorted(filter(None, names)))
        raise ScriptError(
            f"{error}\nthe script takes from its machine: {stated}; type its values: {define}"
        ) from None
    known = host_flags(recipe.slime.version).flags
    return {known[one.flag].name: one.values for group in groups.values() for one in split(group)}


def _accounted(
    flag: str,
    given: Given,
    sources: dict[str, str],
    emitted: dict[str, tuple[str, ...]],
    found: Imported,
) -> bool:
    """Whether a flag needs no [extra]; puts it into the part of the report it belongs to."""
    version = found.recipe.slime.version
    said, reason = _said(flag, given), without_effect(version).get(flag)
    if reason is not None and reason.group == "fork":
        now = f"now {sources[flag]}" if flag in sources else f"instead: {reason.instead}"
        found.fork.append((said, f"{reason.why}; {now}"))
        return True
    if flag == "--wandb-host" and "--wandb-key" in given:
        return True
    if reason is not None and reason.group in ("ignored", "overwritten"):
        found.no_effect.append((said, str(reason)))
        return True
    if flag in ("--use-kl-loss", "--kl-loss-coef", "--kl-loss-type") and flag not in sources:
        return _kl(said, emitted, found)
    if flag in sources:
        return True
    if reason is not None or flag in NOT_CARRIED:
        found.dropped.append((said, str(reason) if reason else NOT_CARRIED[flag]))
        return True
    known = host_flags(version).flags.get(flag)
    wrong = problem_of(GivenFlag(flag, given[flag]), host_flags(version))
    if known is None or wrong is not None:
        found.no_effect.append((said, wrong or "unknown"))
        return True
    return _said_by_ours(flag, known, given, emitted, found)


def _kl(said: str, emitted: dict[str, tuple[str, ...]], found: Imported) -> bool:
    if "--use-kl-loss" in emitted:
        found.same.append((said, "given with loss.kl_coef"))
    else:
        found.no_effect.append(
            (said, "the coefficient is 0: it loaded a reference model and ran it for nothing")
        )
    return True


def _said_by_ours(
    flag: str,
    known: Flag,
    given: Given,
    emitted: dict[str, tuple[str, ...]],
    found: Imported,
) -> bool:
    said, words = _said(flag, given), given[flag]
    ours = emitted.get(SAME_AS.get(flag, known.name))
    hf = given.get("--hf-checkpoint")
    if flag in SAME_AS and ours is not None:
        found.same.append((said, f"{SAME_AS[flag]} {' '.join(ours)}"))
    elif ours is not None and _equal(words, ours):
        found.same.append((said, "given in any case"))
    elif ours is not None and not {known.name, flag} & STANDING:
        found.dropped.append((said, f"the recipe says {' '.join(ours) or 'so already'}"))
    elif ours is None and _is_default(flag, words):
        found.same.append((said, "the default"))
    elif flag in ("--tokenizer-model", "--tokenizer-type") and given.get("--tokenizer-model") == hf:
        found.same.append((said, "the default: the tokenizer of --hf-checkpoint"))
    else:
        return False
    return True


def _is_default(flag: str, words: tuple[str, ...]) -> bool:
    if flag == "--moe-layer-freq":
        return set(re.sub(r"\*\d+", "", words[0]).strip("'()[]")) == {"1"}
    return flag in DEFAULTS and _equal(words, (str(DEFAULTS[flag]),))


def _equal(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    if one == other:
        return True
    try:
        return [float(word) for word in one] == [float(word) for word in other]
    except ValueError:
        return False


def _typed(words: tuple[str, ...], flag: Flag) -> Any:
    readers: dict[str, Any] = {"int": int, "float": float, "json": json.loads}
    if flag.kind == "switch":
        return True
    read = [readers.get(flag.kind, str)(word) for word in words]
    return read if flag.values is not None else read[0]


def _said(flag: str, given: Given) -> str:
    return " ".join([flag, *given[flag]])


def _table(values: dict[str, Any], recipe: Recipe) -> dict[str, Any]:
    """The table of the recipe file: each key that was found, with the type the recipe gives it."""
    typed: dict[str, Any] = {}
    whole = recipe.model_dump(mode="json")
    for key in values:
        value: Any = whole
        for part in key.split(".", 2):
            value = value[part]
        typed[key] = value
    return nest(typed, levels=2)
