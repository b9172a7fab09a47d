"""The areas in the order of the report, with what each may take.

One design choice: cheap and local first, so that a path that is wrong is on the screen before a
judge is asked; the data come last, their scan may take minutes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from launch.preflight.arguments import check_arguments
from launch.preflight.context import Context
from launch.preflight.data import check_data
from launch.preflight.disk import check_disk
from launch.preflight.finding import Finding
from launch.preflight.judge import check_judge
from launch.preflight.machine import check_machine
from launch.preflight.model import check_model
from launch.preflight.paths import check_paths
from launch.preflight.plan import check_plan
from launch.preflight.resume import check_resume
from launch.preflight.runner import Check, run_checks
from launch.preflight.signal import check_signal
from launch.preflight.template import check_template
from launch.preflight.trials import check_trials
from launch.preflight.versions.check import check_versions
from slime_ext.data.hub.names import is_hub, parse_hub
from slime_ext.data.hub.stored import prepared_file, read_manifest
from slime_ext.errors import ExplainedError
from slime_ext.recipe.load import dump_recipe
from slime_ext.recipe.schema import Recipe

MINUTE, HOUR = 60.0, 3600.0

CHECKS = (
    Check("paths", check_paths, MINUTE),
    Check("model", check_model, MINUTE),
    Check("template", check_template, 5 * MINUTE),
    Check("arguments", check_arguments, MINUTE, cluster_only=True, needs_shape=True),
    Check("plan", check_plan, 5 * MINUTE, cluster_only=True, needs_shape=True),
    Check("resume", check_resume, MINUTE),
    Check("disk", check_disk, MINUTE, needs_shape=True),
    Check("signal", check_signal, MINUTE),
    Check("machine", check_machine, MINUTE, cluster_only=True),
    Check("versions", check_versions, 15 * MINUTE, cluster_only=True),
    Check("judge", check_judge, HOUR),
    Check("data", check_data, 12 * HOUR),
    Check("reward", check_trials, HOUR),
)


def preflight(asked: Recipe, runs: Path, *, offline: bool = False) -> list[Finding]:
    """Everything `longrl check` finds out about `asked`, whose run would lie under `runs`.

    With `offline` nothing is asked over the network, and what this machine lacks is skipped.
    """
    with tempfile.TemporaryDirectory() as scratch:
        try:
            recipe = on_disk(asked, Path(scratch))
        except (ExplainedError, OSError, ModuleNotFoundError) as error:
            if not offline or not isinstance(error, OSError | ModuleNotFoundError):
                return [Finding("recipe", "files", "fail", str(error))]
            recipe = asked
        return run_checks(CHECKS, recipe, Context(recipe, asked, runs, offline))


def on_disk(asked: Recipe, scratch: Path) -> Recipe:
    """The recipe with real files in place of `builtin:` (made in `scratch`) and `hub:` names.

    For the cluster's backend a set that is not prepared keeps its name, so that what is absent is
    looked at by `check_paths`. Raises what the embedded backend's resolution raises.
    """
    if asked.backend == "embedded" or "builtin:" in dump_recipe(asked):
        from slime_ext.embedded.builtin import resolve, write_data

        resolved = resolve(asked, scratch)
        write_data(asked, resolved)
        return resolved
    data = asked.data
    return asked.model_copy(
        update={
            "data": data.model_copy(
                update={
                    "train": _local(data.train, data.format),
                    "eval": None if data.eval is None else _local(data.eval, data.format),
                    "eval_sets": {
                        name: _local(file, data.format) for name, file in data.eval_sets.items()
                    },
                }
            )
        }
    )


def _local(file: str, format: str) -> str:
    if not is_hub(file):
        return file
    name = parse_hub(file)
    return file if read_manifest(name, format) is None else str(prepared_file(name, format))
