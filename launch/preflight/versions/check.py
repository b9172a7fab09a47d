"""Versions of the host: each package works, and all of them belong to one release.

One design choice: a package is judged once. Where a trap names it, the trap's finding stands alone;
the line of the table would only repeat it in weaker words.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from launch.preflight.versions.known import MEGATRON, NEED_GPU, RELEASED_WITH, REQUIRED, USEFUL
from launch.preflight.versions.run import Probe, run_probes
from launch.preflight.versions.traps import TRAPS
from slime_ext.recipe.schema import Recipe

WANDB_NAME = 128
"""Characters of a W&B project at most."""
_WANDB_REFUSED = set("/\\#?%:")


def check_versions(recipe: Recipe, context: Context) -> list[Finding]:
    """Import everything the job imports, in child processes."""
    area = Area("versions")
    if recipe.track.wandb != "off":
        _wandb_names(recipe, area)
    if context.host_elsewhere:
        area.skip("packages", f"{context.host_elsewhere}: packages were not looked at")
        return area.findings
    names = [*REQUIRED, *USEFUL]
    if recipe.track.wandb != "off":
        names.append("wandb")
        _ray_first(area)
    path = [recipe.slime.path, recipe.slime.megatron_path]
    judge(recipe, run_probes(names, context.python, path), area)
    _megatron_commit(recipe, area)
    return area.findings


def judge(recipe: Recipe, probes: Mapping[str, Probe], area: Area) -> None:
    """Traps first; then each package that no trap has named."""
    for trap in TRAPS:
        trap(recipe, probes, area)
    named = {finding.name for finding in area.findings if finding.status == "fail"}
    gpus = int(probes["torch"].facts.get("cuda", 0)) if "torch" in probes else 0
    release = recipe.slime.version
    image = f"use slime's image of {release}"
    rest = [probe for name, probe in probes.items() if name not in named]
    absent = [one.package for one in rest if one.ending == "absent" and one.package not in USEFUL]
    if absent:
        area.fail("packages", f"not installed: {', '.join(absent)}", image)
    for probe in rest:
        if probe.package not in absent:
            _package(probe, release, gpus, area)


def _package(probe: Probe, release: str, gpus: int, area: Area) -> None:
    name, image = probe.package, f"use slime's image of {release}"
    pin = RELEASED_WITH[release].get(name)
    if probe.ending == "works":
        said = f"{probe.version or 'no version stated'} ({probe.facts.get('call')})"
        if pin is not None and _release(probe.version) != pin:
            area.warn(
                name,
                f"{said}; the image of slime {release} has {pin}, other pairs are untested",
                image,
            )
        else:
            area.ok(name, said)
    elif probe.ending == "absent":
        area.warn(name, "not installed: Megatron falls back to slower code", image)
    elif gpus == 0 and name in NEED_GPU and probe.ending == "broken":
        area.warn(
            name,
            f"does not load on this machine, which has no GPU: {probe.error}",
            "type longrl check on a compute node",
        )
    else:
        area.fail(name, f"{probe.ending}: {probe.error}", image)


def _release(version: str | None) -> str:
    """The version without a local part such as +cu129."""
    return (version or "").partition("+")[0]


def _megatron_commit(recipe: Recipe, area: Area) -> None:
    root, wanted = Path(recipe.slime.megatron_path), MEGATRON[recipe.slime.version]
    if not (root / ".git").exists() or shutil.which("git") is None:
        area.skip("megatron commit", f"{root} is no git checkout, or there is no git")
        return
    command = ["git", "-c", f"safe.directory={root}", "-C", str(root), "rev-parse", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    if found.startswith(wanted):
        area.ok("megatron commit", found[:12])
    else:
        area.warn(
            "megatron commit",
            f"{root} is at {found[:12] or 'no commit'}; slime {recipe.slime.version} was released "
            f"with {wanted}, and flags are checked against that one",
            f"git -C {root} checkout {wanted}, then apply slime's patch",
        )


def _wandb_names(recipe: Recipe, area: Area) -> None:
    """W&B refuses some names when the run starts; a recipe's name is always a valid run id."""
    project = recipe.track.project
    if len(project) > WANDB_NAME or _WANDB_REFUSED & set(project):
        area.fail(
            "wandb names",
            f"track.project = {project!r} is no W&B project name",
            f"at most {WANDB_NAME} characters, none of {' '.join(sorted(_WANDB_REFUSED))}",
        )
    elif len(recipe.name) > WANDB_NAME:
        area.fail(
            "wandb names",
            f"name has {len(recipe.name)} characters, a W&B name at most {WANDB_NAME}",
            "shorten it",
        )
    else:
        area.ok("wandb names", f"project {project!r}, run {recipe.name!r}")


def _ray_first(area: Area) -> None:
    """A Ray that train.py starts by itself comes after wandb.init, whose run its actors then
    cannot join ("run ID is in use")."""
    address = os.environ.get("RAY_ADDRESS")
    if address:
        area.ok("ray before wandb", f"RAY_ADDRESS = {address}")
    else:
        area.skip(
            "ray before wandb",
            "no RAY_ADDRESS yet; Ray must run before train.py, as in "
            "`longrl submit`: by hand, type ray start --head first",
        )
