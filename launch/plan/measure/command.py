"""`longrl plan --measure`, from a recipe to rows.

One design choice: a GPU measures the recipe's own length and layers, a CPU a share small enough for
a minute, and both can be told another length.
"""

from __future__ import annotations

from launch.plan.measure.planned import CPU_LAYERS, CPU_TOKENS, Planned, StageName, planned
from launch.plan.measure.run import Device, Measured, find_device, measure
from launch.plan.measure.share import MeasureError
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.shape import ModelShape


def measure_stage(
    recipe: Recipe, shape: ModelShape, stage: StageName | None = None, tokens: int | None = None
) -> tuple[Planned, Measured, Device]:
    """Build and train one GPU's share of a stage, with `tokens` on the GPU.

    Raises LayoutError where the layout breaks a rule, MeasureError where the share cannot be built
    or does not fit into this machine's memory.
    """
    device = find_device()
    on_cpu = device.kind == "cpu"
    if on_cpu and tokens is None:
        tokens = CPU_TOKENS
    wanted = planned(recipe, shape, stage, tokens, CPU_LAYERS if on_cpu else None)
    # A GPU refuses what does not fit; on CPU the whole machine would suffer first.
    if device.memory is not None and wanted.terms["peak"] > device.memory:
        raise MeasureError(
            f"the share takes {wanted.terms['peak'] / 2**30:.1f} GiB and this machine has "
            f"{device.memory / 2**30:.1f} GiB free; write fewer --tokens or measure on a GPU"
        )
    return wanted, measure(wanted.share, device), device
