"""Whether the checkpoints of the run fit on its disk.

One design choice: a save is written beside the ones that are kept before the oldest goes, so one
more than checkpoint.keep must fit, and the exported model.
"""

from __future__ import annotations

import shutil

from launch.plan.storage import disk
from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from launch.preflight.paths import existing
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.count import count_parameters

EMBEDDED_SAVE, EMBEDDED_WEIGHTS = 12, 4
"""Bytes a parameter of the embedded trainer: fp32 weights with both moments; the weights alone."""


def check_disk(recipe: Recipe, context: Context) -> list[Finding]:
    """Free space where the run folder lies, against one save and against all that are kept."""
    area = Area("disk")
    save, kept = _needs(recipe, context)
    needs = f"a save takes {_gb(save)}, saves and export at one time {_gb(kept)}"
    here = existing(context.runs)
    if context.offline and context.cluster:
        area.skip("space", f"{needs}; the cluster's disk was not looked at")
        return area.findings
    free = shutil.disk_usage(here).free
    said = f"{_gb(free)} free at {here}; {needs}"
    if free < save:
        area.fail("space", said, "choose another disk with --runs")
    elif free < kept:
        area.warn("space", said, "free space, lower checkpoint.keep, or choose another --runs")
    else:
        area.ok("space", said)
    return area.findings


def _needs(recipe: Recipe, context: Context) -> tuple[float, float]:
    """Bytes of one save, and of the most that lies on the disk at one time."""
    if context.cluster:
        plan = disk(recipe, context.shape)
        return plan.save, plan.peak
    parameters = count_parameters(context.shape).total
    save = EMBEDDED_SAVE * parameters
    return save, (recipe.checkpoint.keep + 1) * save + EMBEDDED_WEIGHTS * parameters


def _gb(size: float) -> str:
    gigabytes = size / 1e9
    return f"{gigabytes:,.0f} GB" if gigabytes >= 10 else f"{gigabytes:.2g} GB"
