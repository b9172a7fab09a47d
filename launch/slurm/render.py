"""The job script of a recipe, from small templates to one readable file.

One design choice: everything the recipe decides is written into the script; nothing is computed
from the submitting shell, so the file in the run folder is what ran, and can be read and diffed.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import jinja2

from launch.slurm.container import container_entry
from launch.slurm.environment import environment
from slime_ext.errors import ExplainedError
from slime_ext.recipe.schema import Recipe

TEMPLATES = Path(__file__).parents[1] / "templates"
PARTS = {
    "slime": ("header", "environment", "ray", "body"),
    "embedded": ("header", "environment", "single"),
}


class PathError(ExplainedError):
    """A path that SLURM or the shell would not take as it is."""


def render_job(recipe: Recipe, run: Path) -> str:
    """The script that runs `recipe` in the folder `run`.

    Raises PathError for a run folder whose path has blanks or quotes (SLURM's --output has no way
    to quote them), SecretInRecipeError for a key in cluster.environment.
    """
    if shlex.quote(str(run)) != str(run) or "%" in str(run):
        raise PathError(
            f"the run folder {str(run)!r} has characters that SLURM cannot take in --output; "
            "choose another with --runs"
        )
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
    entry = container_entry(recipe.cluster, run)
    values = {
        "name": recipe.name,
        "backend": recipe.backend,
        "cluster": recipe.cluster,
        "run": str(run),
        "environment": environment(recipe, run),
        "secrets_file": recipe.cluster.secrets_file,
        "srun_container": shlex.join(entry.srun),
        "inside": shlex.join(entry.before),
    }
    parts = PARTS[recipe.backend]
    return "".join(engine.get_template(f"{part}.sh.j2").render(values) for part in parts)
