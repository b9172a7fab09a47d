"""Compact lists of a host's flags from the long ones: how launch/flags/*.json were made.

    python tests/contracts/compact_flags.py FOLDER_OF_LONG_LISTS launch/flags

One design choice: only what the check needs is kept (names, type, number of values, choices, which
parser reads it), so that both hosts fit in 60 KB.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HOSTS = {
    "v0.3.1": ("megatron_args_1dcf0da.json", "sglang_args_0.5.15.post1.json"),
    "v0.2.4": ("megatron_args_3714d81.json", "sglang_args_0.5.9.json"),
}
PATCHED_IN = {"use-gated-attention": "switch"}
"""Added to Megatron-LM by the patches that the images of slime apply."""
ROUTER_LIST = "args_v0.3.1.json"
"""Both images install router 0.3.2 and both slimes add its flags; one list has them."""
FORKED_POLICY = "consistent_hashing"
"""A policy of the router that the images install, a fork; the list is the released router's."""
TYPES = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "json.loads": "json",
    "loads": "json",
    "json_list_type": "json",
}


def compact(folder: Path, version: str) -> dict[str, Any]:
    """The list of one host as launch/flags stores it."""
    megatron_file, sglang_file = HOSTS[version]
    slime = _read(folder / f"args_{version}.json")
    megatron = _read(folder / megatron_file)
    sglang = _read(folder / sglang_file)
    of_megatron = {name for arg in megatron["args"] for name in arg["flags"]}
    # Where Megatron has a flag too, slime changes its default only.
    of_slime = [arg for arg in slime["args"] if not of_megatron & set(arg["flags"])]
    skipped = set(slime["sglang_server_args_skipped"])
    router = _read(folder / ROUTER_LIST)["sglang_router_args"]
    for arg in router:
        if "--router-policy" in arg["flags"]:
            arg["choices"] = sorted([*arg["choices"], FORKED_POLICY])
    return {
        "slime": slime["commit"][:8],
        "megatron": megatron["commit"][:8],
        "sglang": sglang["source"].split()[1],
        "not_offered": sorted(
            f"sglang-{name.removeprefix('--')}"
            for arg in sglang["args"]
            if arg["dest"] in skipped
            for name in arg["flags"]
        ),
        "flags": {
            "slime": _table(of_slime + slime["pre_parsed_args"] + slime["sglang_side_own_args"]),
            "router": _table(router),
            "megatron": _table(megatron["args"]) | PATCHED_IN,
            "sglang": _table(
                [arg for arg in sglang["args"] if arg["dest"] not in skipped], "sglang-"
            ),
        },
    }


def _read(path: Path) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(path.read_text())
    return table


def _table(arguments: list[dict[str, Any]], prefix: str = "") -> dict[str, Any]:
    """`name|alias` to a type, or to [type, number of values, choices] where there is more."""
    table = {}
    for arg in arguments:
        names = "|".join(prefix + name.removeprefix("--") for name in arg["flags"])
        kind, values = TYPES.get(arg["type"], "str"), arg["nargs"]
        if arg["action"] == "DeprecatedAction":
            kind = "removed"
        elif values == 0:
            kind = "switch"
        choices = [str(choice).rpartition(".")[2] for choice in arg["choices"] or ()]
        more = [None if values == 0 else values, choices or None]
        table[names] = [kind, *more] if any(more) else kind
    return dict(sorted(table.items()))


if __name__ == "__main__":
    for host in HOSTS:
        lists = compact(Path(sys.argv[1]), host)
        text = json.dumps(lists, separators=(",", ":")) + "\n"
        (Path(sys.argv[2]) / f"{host}.json").write_text(text)
