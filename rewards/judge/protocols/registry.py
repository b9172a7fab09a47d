"""Which judge protocols exist, by the name `[outcome.judge] protocol` gives."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rewards.judge.protocols.aa_lcr import AaLcr
from rewards.judge.protocols.base import Protocol
from rewards.judge.protocols.eapo import Eapo
from rewards.judge.protocols.longrlvr import LongRlvr
from rewards.judge.protocols.structured import JsonVerdict

PROTOCOLS: Mapping[str, type[Protocol]] = MappingProxyType(
    {protocol.name: protocol for protocol in (AaLcr, LongRlvr, Eapo, JsonVerdict)}
)
"""Every protocol that gives verdicts."""


def make_protocol(name: str, structured: bool = False) -> Protocol:
    """The protocol called `name`; `structured` asks for a JSON object in place of its own form.

    Raises ValueError for an unknown name.
    """
    if name not in PROTOCOLS:
        raise ValueError(
            f"unknown judge protocol {name!r}; set outcome.judge.protocol to one of "
            f"{sorted(PROTOCOLS)}"
        )
    return PROTOCOLS[name](structured)
