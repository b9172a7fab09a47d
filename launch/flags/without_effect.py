"""Flags that a host accepts and that then do nothing, or not what they say, with the reason.

One design choice: each entry names the line of slime that shows it, per host, so that a reader can
check the claim and a later slime that changes it is noticed.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Group = Literal["ignored", "overwritten", "replaced", "refused", "fork"]
"""`ignored`: nothing reads it. `overwritten`: slime sets the value itself. `replaced`: its reader
is a function that ours replace. `refused`: it works, and must not be used. `fork`: the released
LongTraceRL code's own, or a name that never existed; no slime knows it."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a flag is not to be given, and what to write instead."""

    flag: str
    group: Group
    why: str
    where: str
    """`FILE:LINE` in slime, or empty."""
    instead: str
    """A recipe key, or what else to do; empty where there is nothing to do."""

    def __str__(self) -> str:
        shown = f" ({self.where})" if self.where else ""
        return self.why + shown + (f"; instead: {self.instead}" if self.instead else "")


@functools.cache
def without_effect(version: str) -> Mapping[str, Reason]:
    """The flags of this kind under host `version`, by name."""
    table = json.loads((Path(__file__).parent / "without_effect.json").read_text())
    return {
        flag: Reason(
            flag, group, entry["why"], entry.get("where", {}).get(version, ""), entry["instead"]
        )
        for group, entries in table.items()
        for flags, entry in entries.items()
        if version in entry.get("hosts", ("v0.3.1", "v0.2.4"))
        for flag in flags.split("|")
    }
