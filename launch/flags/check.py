"""A command line against the flags of a host: names, number of values, types, choices, effect.

One design choice: everything wrong is collected before anything is raised, because a person who
corrects one flag at a time submits as many jobs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launch.flags.lists import Flag, HostFlags, host_flags
from launch.flags.without_effect import without_effect
from slime_ext.errors import ExplainedError, nearest

OWNERS = {
    "slime": "slime",
    "router": "the router",
    "megatron": "Megatron-LM",
    "sglang": "SGLang",
}


class FlagError(ExplainedError, ValueError):
    """A command line that the host would misread; one line for each flag."""


@dataclass(frozen=True, slots=True)
class Given:
    """One flag as it stands on a command line."""

    flag: str
    values: tuple[str, ...]


def check_flags(
    argv: Sequence[str], version: str, origins: Mapping[str, str] | None = None
) -> None:
    """Raise FlagError for every flag that host `version` does not know, or that does nothing there.

    `origins` names where a flag comes from (flag to recipe key), for the message.
    """
    host, named = host_flags(version), origins or {}
    problems = []
    given = split(argv)
    for one in given:
        what = problem_of(one, host)
        if what is not None:
            origin = f"{named[one.flag]}: " if one.flag in named else ""
            problems.append(f"{origin}{one.flag}: {what}")
    problems += [f"{flag}: {what}" for flag, what in _together(given)]
    if problems:
        raise FlagError("\n".join(problems))


def problem_of(given: Given, host: HostFlags) -> str | None:
    """What is wrong with one flag under `host`, or None."""
    flag = host.flags.get(given.flag)
    reason = without_effect(host.version).get(given.flag)
    if reason is not None:
        return str(reason)
    if given.flag in host.not_offered:
        return "slime sets this option of SGLang itself and does not let it through"
    if flag is None:
        return _unknown(given.flag, host)
    if flag.kind == "removed":
        return f"{OWNERS[flag.owner]} no longer has this option and stops at it"
    return _wrong_number(given, flag) or _wrong_value(given, flag)


def split(argv: Sequence[str]) -> list[Given]:
    """The flags of `argv` with the words that follow each; raises FlagError at a stray word."""
    found: list[tuple[str, list[str]]] = []
    for word in argv:
        if word.startswith("--"):
            flag, equals, value = word.partition("=")
            found.append((flag, [value] if equals else []))
        elif not found:
            raise FlagError(f"{word!r} stands before any flag")
        else:
            found[-1][1].append(word)
    return [Given(flag, tuple(values)) for flag, values in found]


def _unknown(name: str, host: HostFlags) -> str:
    near = nearest(name, host.flags)
    if not near.startswith("did you mean"):
        return f"slime {host.version} does not know this flag, and would ignore it in silence"
    owner = OWNERS[host.flags[near.split("'")[1]].owner]
    return (
        f"slime {host.version} does not know this flag, and would ignore it in silence; "
        f"{near.removesuffix('?')}, a flag of {owner}?"
    )


def _wrong_number(given: Given, flag: Flag) -> str | None:
    count = len(given.values)
    if flag.kind == "switch":
        return f"takes no value (got {' '.join(given.values)!r})" if count else None
    match flag.values:
        case None:
            return None if count == 1 else f"takes one value (got {count})"
        case "+":
            return None if count else "takes at least one value"
        case "?":
            return None if count < 2 else f"takes at most one value (got {count})"
        case "*":
            return None
    return None if count == int(flag.values) else f"takes {flag.values} values (got {count})"


def _wrong_value(given: Given, flag: Flag) -> str | None:
    for value in given.values:
        if flag.choices and value not in flag.choices:
            return f"{value!r} is not one of its choices; {nearest(value, flag.choices)}"
        if flag.kind == "bool":
            return (
                "argparse takes any text here as true, so it cannot be set to false; leave it out"
            )
        if not _reads(value, flag.kind):
            return f"{value!r} is no {flag.kind}"
    return None


def _reads(value: str, kind: str) -> bool:
    readers: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "json": json.loads}
    try:
        readers.get(kind, str)(value)
    except ValueError:
        return False
    return True


def _together(given: Sequence[Given]) -> Iterator[tuple[str, str]]:
    """Flags that do nothing because of the value of another."""
    values = {one.flag: one.values for one in given}
    if "--use-kl-loss" in values:
        coefficient = values.get("--kl-loss-coef", ("0",))
        if all(_reads(value, "float") and float(value) == 0 for value in coefficient):
            yield (
                "--use-kl-loss",
                "with a coefficient of 0 it adds nothing to the loss and still loads a reference "
                "model and runs it over every sample; instead: loss.kl_coef above 0, or neither",
            )
    seen: set[str] = set()
    for one in given:
        if one.flag in seen:
            yield one.flag, "given twice; argparse keeps the last"
        seen.add(one.flag)
