"""CPU time of a process and everything it started, read from /proc."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def tree_cpu_seconds(pid: int) -> float:
    """User plus system time of `pid` and its living descendants, with what each has reaped.

    0.0 where the process is gone; resolution 10 ms.
    """
    stats = _all_stats()
    children: dict[int, list[int]] = {}
    for child, (parent, _) in stats.items():
        children.setdefault(parent, []).append(child)
    total, open_pids = 0.0, [pid]
    while open_pids:
        current = open_pids.pop()
        total += stats.get(current, (0, 0.0))[1]
        open_pids += children.get(current, [])
    return total


def _all_stats() -> dict[int, tuple[int, float]]:
    """Parent and CPU seconds of every process that can be read."""
    stats: dict[int, tuple[int, float]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            text = (folder / "stat").read_text()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        # The second field is the command in brackets and may itself hold spaces and brackets.
        fields = text[text.rindex(")") + 2 :].split()
        ticks = sum(int(field) for field in fields[11:15])
        stats[int(folder.name)] = (int(fields[1]), ticks / _TICKS)
    return stats
