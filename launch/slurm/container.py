"""How a step enters its container: pyxis by options of srun, apptainer by a command before it.

One design choice: the container always sees the run folder and /tmp, where Ray keeps its sockets,
so that head, worker and driver of one node meet although each enters a container of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from slime_ext.recipe.cluster_sections import ClusterSection


@dataclass(frozen=True, slots=True)
class Entry:
    """Words put after `srun` and before the command; both empty without a container."""

    srun: tuple[str, ...]
    before: tuple[str, ...]


def container_entry(cluster: ClusterSection, run: Path) -> Entry:
    """Entry into the container of `cluster`."""
    if cluster.container == "none" or cluster.image is None:
        return Entry((), ())
    folders = [str(run.parent), "/tmp", *cluster.mounts]
    mounts = [folder if ":" in folder else f"{folder}:{folder}" for folder in folders]
    if cluster.container == "pyxis":
        return Entry(
            (f"--container-image={cluster.image}", f"--container-mounts={','.join(mounts)}"), ()
        )
    binds = [word for mount in mounts for word in ("--bind", mount)]
    return Entry((), ("apptainer", "exec", "--nv", *binds, cluster.image))
