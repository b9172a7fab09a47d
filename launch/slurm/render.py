"""The job script of a recipe, from small templates to one readable file.

One design choice: everything the recipe decides is written into the script; nothing is computed
from the submitting shell, so the file in the run folder is what ran, and can be read and diffed.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import jinja2

from launch.slurm.container import container_entry
from launch.slurm.environment import environment
from slime_ext.errors import ExplainedError
from slime_ext.recipe.cluster_sections import ClusterSection
from slime_ext.recipe.schema import Recipe

TEMPLATES = Path(__file__).parents[1] / "templates"
PARTS = {
    "slime": ("header", "environment", "ray", "services", "body"),
    "embedded": ("header", "environment", "single"),
}


class ScriptError(ExplainedError):
    """A path or an option that SLURM or the shell would not take as it is."""


def render_job(recipe: Recipe, run: Path, smoke: bool = False) -> str:
    """The script that runs `recipe` in the folder `run`; `smoke`: one step, the others from its
    checkpoint, an export.

    Raises ScriptError for a run folder whose path has blanks or quotes (SLURM's --output has no way
    to quote them) or an option that is none, SecretInRecipeError for a key in cluster.environment.
    """
    if shlex.quote(str(run)) != str(run) or "%" in str(run):
        raise ScriptError(
            f"the run folder {str(run)!r} has characters that SLURM cannot take in --output; "
            "choose another with --runs"
        )
    _check_options(recipe.cluster.sbatch)
    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # Jinja's own mark for comments stands in bash's ${#array[@]}.
        comment_start_string="<#",
        comment_end_string="#>",
    )
    engine.filters["sh"] = shlex.quote
    entry = container_entry(recipe, run)
    values = {
        **_places(recipe.cluster),
        "name": recipe.name,
        "backend": recipe.backend,
        "cluster": recipe.cluster,
        "run": str(run),
        "smoke": smoke,
        "environment": environment(recipe, run),
        "secrets_file": recipe.cluster.secrets_file,
        "srun_container": entry.srun,
        "inside": shlex.join(entry.before),
    }
    parts = [part for part in PARTS[recipe.backend] if part != "services" or values["services"]]
    return "".join(engine.get_template(f"{part}.sh.j2").render(values) for part in parts)


def _check_options(lines: list[str]) -> None:
    for line in lines:
        if not re.fullmatch(r"-\S.*", line):
            raise ScriptError(
                f"cluster.sbatch holds {line!r}; write one option each, as sbatch takes it: "
                '["--qos=high", "--exclude=node7"]'
            )


def _places(cluster: ClusterSection) -> dict[str, Any]:
    """Nodes of the job, and where each service runs: its place in the list of nodes, or the first
    of its GPUs on the first node."""
    alone = [one.name for one in cluster.services if one.own_node]
    first_gpu, free = {}, cluster.first_node_gpus
    for service in cluster.services:
        first_gpu[service.name] = free
        free += service.gpus
    return {
        "nodes": cluster.nodes + len(alone),
        "own_node": {name: cluster.nodes + place for place, name in enumerate(alone)},
        "first_gpu": first_gpu,
        "services": cluster.services,
    }
