"""Waiting until every node has joined Ray.

One design choice: nodes are expected by name, so that a deadline that passes says which are
missing; a placement group alone would wait for them without limit and without a word.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slime_ext.errors import ExplainedError

NODE_RESOURCE = "node:"
"""Each node announces a resource of this prefix and its SLURM name."""
Poll = Callable[[], Mapping[str, int]]
"""Nodes that have joined, by name, with their GPUs."""


class NotReadyError(ExplainedError):
    """Nodes did not join in time."""


def wait_ready(
    expected: Mapping[str, int], seconds: float, poll: Poll, pause_s: float = 1.0
) -> float:
    """Return once every node of `expected` has joined with as many GPUs; the seconds it took.

    Raises NotReadyError after `seconds`, naming the nodes that are missing or short of GPUs.
    """
    start = time.monotonic()
    while True:
        joined = poll()
        lacking = [name for name, gpus in expected.items() if joined.get(name, -1) < gpus]
        waited = time.monotonic() - start
        if not lacking:
            return waited
        if waited >= seconds:
            raise NotReadyError(_explain(lacking, joined, expected, seconds))
        time.sleep(pause_s)


def ray_nodes(dashboard: str) -> dict[str, int]:
    """Nodes alive by Ray's own state API, under their SLURM names; empty while it is silent."""
    joined = {}
    for node in _listed(dashboard):
        resources = node.resources_total or {}
        names = [key for key in resources if key.startswith(NODE_RESOURCE)]
        if node.state == "ALIVE":
            for name in names:
                joined[name.removeprefix(NODE_RESOURCE)] = int(resources.get("GPU", 0))
    return joined


def ray_addresses(dashboard: str) -> list[str]:
    """Addresses of the nodes alive, sorted."""
    return sorted({node.node_ip for node in _listed(dashboard) if node.state == "ALIVE"})


def _listed(dashboard: str) -> list[Any]:
    """Nodes as Ray lists them; none while nobody answers, or somebody who knows another token."""
    from ray.exceptions import RayError
    from ray.util.state import list_nodes
    from ray.util.state.exception import RayStateApiException

    try:
        return list(list_nodes(address=dashboard, timeout=10))
    except (RayStateApiException, RayError, OSError):
        return []


def _explain(
    lacking: Sequence[str], joined: Mapping[str, int], expected: Mapping[str, int], seconds: float
) -> str:
    parts = [
        f"{name} (joined with {joined[name]} of {expected[name]} GPUs)" if name in joined else name
        for name in lacking
    ]
    return (
        f"after {seconds:g} s these nodes have not joined Ray: {', '.join(parts)}. Their part of "
        "the log above says why; a node that always fails is left out with "
        'cluster.sbatch = ["--exclude=NODE"], a slow start gets more time with '
        "cluster.ready_timeout_s"
    )
