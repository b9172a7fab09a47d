"""How a step enters its container: pyxis by options of srun, apptainer by a command before it.

One design choice: the container always sees /tmp, where Ray keeps its sockets (head, worker and
driver of one node each enter a container of their own), and every path that the recipe names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from launch.argument_groups.words import NOT_A_PATH
from slime_ext.recipe.schema import Recipe


@dataclass(frozen=True, slots=True)
class Entry:
    """Words put after `srun` and before the command; both empty without a container."""

    srun: tuple[str, ...]
    before: tuple[str, ...]


def container_entry(recipe: Recipe, run: Path) -> Entry:
    """Entry into the container of the recipe's cluster."""
    cluster = recipe.cluster
    if cluster.container == "none" or cluster.image is None:
        return Entry((), ())
    mounts = [folder if ":" in folder else f"{folder}:{folder}" for folder in _seen(recipe, run)]
    if cluster.container == "pyxis":
        return Entry(
            (f"--container-image={cluster.image}", f"--container-mounts={','.join(mounts)}"), ()
        )
    binds = [word for mount in mounts for word in ("--bind", mount)]
    return Entry((), ("apptainer", "exec", "--nv", *binds, cluster.image))


def _seen(recipe: Recipe, run: Path) -> list[str]:
    """What the container sees of the host, each once."""
    model, data = recipe.model, recipe.data
    paths = [model.path, model.megatron_checkpoint, data.train, data.eval, *data.eval_sets.values()]
    found = [str(run.parent), "/tmp", *recipe.cluster.mounts]
    if recipe.cluster.secrets_file:
        found.append(recipe.cluster.secrets_file)
    for path in paths:
        if path is not None and not path.startswith(NOT_A_PATH):
            whole = Path(path).absolute()
            found.append(str(whole.parent if whole.suffix else whole))
    return list(dict.fromkeys(found))
