"""The flags of a host: slime's, its router's, Megatron-LM's and SGLang's, by name.

One design choice: the lists are facts read from the parsers and shipped as JSON, so that a command
line is checked on a machine where neither slime nor a GPU is: slime ignores unknown flags in
silence.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

Owner = Literal["slime", "router", "megatron", "sglang"]
Kind = Literal["int", "float", "bool", "str", "json", "switch", "removed"]
"""`switch` takes no value; `removed` is known to the parser, which raises at it."""

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag, under the first of its names."""

    name: str
    """With the leading dashes."""
    aliases: tuple[str, ...]
    owner: Owner
    kind: Kind
    values: str | int | None = None
    """None for exactly one (none for a switch), else argparse's "+", "*", "?" or a number."""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostFlags:
    """All flags of one host, under every name they have."""

    version: str
    flags: Mapping[str, Flag]
    not_offered: frozenset[str]
    """SGLang's flags that slime sets itself and does not let through."""
    sources: Mapping[str, str]
    """Commit of slime and Megatron-LM, version of SGLang."""


@functools.cache
def host_flags(version: str) -> HostFlags:
    """The lists of host `version` ("v0.3.1" or "v0.2.4")."""
    table = json.loads((FOLDER / f"{version}.json").read_text())
    flags = {
        name: flag
        for owner, entries in table["flags"].items()
        for flag in (_flag(owner, names, entry) for names, entry in entries.items())
        for name in (flag.name, *flag.aliases)
    }
    return HostFlags(
        version,
        MappingProxyType(flags),
        frozenset("--" + name for name in table["not_offered"]) - flags.keys(),
        {name: table[name] for name in ("slime", "megatron", "sglang")},
    )


def flags_of(version: str) -> Mapping[str, Flag]:
    """Every flag of host `version`, by each of its names."""
    return host_flags(version).flags


def _flag(owner: Owner, names: str, entry: Any) -> Flag:
    name, *aliases = ("--" + one for one in names.split("|"))
    kind, values, choices = entry if isinstance(entry, list) else (entry, None, None)
    return Flag(name, tuple(aliases), owner, kind, values, tuple(choices or ()))
