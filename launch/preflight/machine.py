"""Limits of this machine that end a cluster run late: ports, open files, shared memory.

One design choice: only what is fixed before the run starts is looked at. Engines and router take
free ports by themselves; Ray's head and the ports that the recipe names do not.
"""

from __future__ import annotations

import os
import resource
import shutil
import socket
from pathlib import Path

from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from slime_ext.recipe.schema import Recipe

RAY_PORTS = {"Ray's head": 6379, "Ray's dashboard": 8265}
OPEN_FILES = 65_536
"""512 connections an engine, doubled by the router, beside Ray's own."""
LEAST_SHM_GIB, ENOUGH_SHM_GIB = 1.0, 16.0
"""A container gets 64 MiB unless told; NCCL and Ray's object store both live there."""
GIB = 2**30


def check_machine(recipe: Recipe, context: Context) -> list[Finding]:
    """Ports, limits and /dev/shm of the node the head will run on."""
    area = Area("machine")
    if context.host_elsewhere:
        area.skip("limits", f"{context.host_elsewhere}: ports and limits were not looked at")
        return area.findings
    _ports(recipe, area)
    _open_files(area)
    _shared_memory(Path("/dev/shm"), area)
    return area.findings


def named_ports(recipe: Recipe) -> dict[str, int]:
    """Ports that somebody fixed in [extra], by flag."""
    flags = {"slime": recipe.extra.slime, "sglang": recipe.extra.sglang}
    return {
        f"extra.{section}.{flag}": int(value)
        for section, table in flags.items()
        for flag, value in table.items()
        if flag.endswith("port") and isinstance(value, int) and not isinstance(value, bool)
    }


def is_free(port: int) -> bool:
    """Whether nothing on this machine listens on `port`."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _ports(recipe: Recipe, area: Area) -> None:
    # Where RAY_ADDRESS names a running Ray, its ports are taken by right.
    wanted = named_ports(recipe) | ({} if os.environ.get("RAY_ADDRESS") else RAY_PORTS)
    taken = [f"{name} {port}" for name, port in wanted.items() if not is_free(port)]
    if taken:
        area.warn(
            "ports",
            f"in use: {', '.join(taken)}",
            "if it is a Ray of yours, `ray stop` or use it; if not, choose other ports",
        )
    else:
        area.ok("ports", f"free: {', '.join(str(port) for port in wanted.values())}")


def _open_files(area: Area) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < OPEN_FILES:
        may_rise = hard < 0 or hard >= OPEN_FILES
        area.warn(
            "open files",
            f"at most {soft} a process; engines, router and Ray want {OPEN_FILES}",
            f"type ulimit -n {OPEN_FILES} in the script that starts Ray"
            if may_rise
            else f"the hard limit is {hard}: start the container with --ulimit "
            f"nofile={OPEN_FILES}, or ask the site to raise it",
        )
    else:
        area.ok("open files", f"at most {'unlimited' if soft < 0 else soft} a process")


def _shared_memory(path: Path, area: Area) -> None:
    if not path.is_dir():
        area.warn("shared memory", f"there is no {path}", "mount one; NCCL and Ray need it")
        return
    gib = shutil.disk_usage(path).free / GIB
    said = f"{gib:.1f} GiB free in {path}"
    remedy = "start the container with --shm-size=64g or --ipc=host"
    if gib < LEAST_SHM_GIB:
        area.fail("shared memory", said, remedy)
    elif gib < ENOUGH_SHM_GIB:
        area.warn("shared memory", said, remedy)
    else:
        area.ok("shared memory", said)
