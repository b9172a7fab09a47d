"""Whether the checkpoints of the run fit on its disk.

One design choice: a save is written beside the ones that are kept before the oldest goes, so one
more than checkpoint.keep must fit.
"""

from __future__ import annotations

import shutil

from launch.preflight.context import Context
from launch.preflight.finding import Area, Finding
from launch.preflight.paths import existing
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.count import count_parameters

CLUSTER_BYTES, EMBEDDED_BYTES = 14, 12
"""Bytes a parameter of one save: bf16 weights with fp32 master copy and two moments under
Megatron's mixed precision; fp32 weights and two moments in the embedded trainer."""
HF_BYTES = {True: 2, False: 4}
"""Of the exported model, by whether the run is the cluster's."""


def check_disk(recipe: Recipe, context: Context) -> list[Finding]:
    """Free space where the run folder lies, against one save and against all that are kept."""
    area = Area("disk")
    parameters = count_parameters(context.shape).total
    save = parameters * (CLUSTER_BYTES if context.cluster else EMBEDDED_BYTES)
    kept = (recipe.checkpoint.keep + 1) * save + parameters * HF_BYTES[context.cluster]
    needs = (
        f"a save takes {_gb(save)}, {recipe.checkpoint.keep} kept, one being written and the "
        f"exported model {_gb(kept)}"
    )
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


def _gb(size: float) -> str:
    gigabytes = size / 1e9
    return f"{gigabytes:,.0f} GB" if gigabytes >= 10 else f"{gigabytes:.2g} GB"
