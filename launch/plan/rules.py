"""What must divide what: the rules of Megatron, SGLang and slime that a layout has to keep.

One design choice: every broken rule is one sentence with both values and what would do, and all of
them are reported at once, because the next one costs another queue of a cluster.
"""

from __future__ import annotations

from launch.plan.layout import Layout, layout_of
from slime_ext.errors import ExplainedError
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.shape import ModelShape


class LayoutError(ExplainedError, ValueError):
    """A layout that cannot run, whatever the memory."""


def require_rules(recipe: Recipe, shape: ModelShape) -> None:
    """Raise LayoutError with a line for each broken rule."""
    refuse(broken_rules(recipe, shape))


def refuse(broken: list[str]) -> None:
    """Raise LayoutError with these sentences, if there are any."""
    if broken:
        lines = "\n".join(f"  {one}" for one in broken)
        raise LayoutError(
            f"this layout cannot run:\n{lines}\n`longrl plan RECIPE --search` lists those that can"
        )


def broken_rules(recipe: Recipe, shape: ModelShape) -> list[str]:
    """Every rule the recipe's layout breaks, as a sentence; empty where it can run."""
    return trainer_rules(recipe, shape) + engine_rules(recipe, shape)


def trainer_rules(recipe: Recipe, shape: ModelShape) -> list[str]:
    """Rules of the trainer's layout that are broken."""
    layout = layout_of(recipe)
    return [
        *_model_rules(shape, layout),
        *_expert_rules(shape, layout, recipe.parallel.sequence_parallel),
        *_gpu_rules(recipe, layout),
        *_batch_rules(recipe, layout),
    ]


def engine_rules(recipe: Recipe, shape: ModelShape) -> list[str]:
    """Rules of the engines that are broken."""
    layout = layout_of(recipe)
    return _engine_size_rules(recipe, layout) + _engine_head_rules(recipe, shape, layout)


def _divisors(value: int, most: int) -> str:
    return ", ".join(str(n) for n in range(1, min(value, most) + 1) if value % n == 0)


def _not_divided(what: str, value: int, key: str, divisor: int, most: int = 64) -> list[str]:
    if value % divisor == 0:
        return []
    return [
        f"{key} = {divisor} does not divide the {value} {what}; {key} may be "
        f"{_divisors(value, most)}"
    ]


def _model_rules(shape: ModelShape, layout: Layout) -> list[str]:
    tp = layout.tp
    rules = [
        *_not_divided("attention heads", shape.num_heads, "parallel.tp", tp),
        *_not_divided("key-value heads", shape.num_kv_heads, "parallel.tp", tp),
        *_not_divided("layers", shape.num_layers, "parallel.pp", layout.pp),
    ]
    if shape.moe is None:
        rules += _not_divided("columns of the feed-forward", shape.ffn_size, "parallel.tp", tp, 16)
    return rules


def _expert_rules(shape: ModelShape, layout: Layout, sequence_parallel: bool) -> list[str]:
    if shape.moe is None:
        return [
            f"parallel.{key} = {value}, but the model has no experts; leave it at 1"
            for key, value in (("ep", layout.ep), ("etp", layout.etp))
            if value > 1
        ]
    rules = [
        *_not_divided("experts", shape.moe.num_experts, "parallel.ep", layout.ep, 128),
        *_not_divided("columns of an expert", shape.moe.ffn_size, "parallel.etp", layout.etp, 16),
    ]
    stage = layout.tp * layout.cp * layout.dp
    if stage % (layout.ep * layout.etp):
        rules.append(
            f"parallel.ep x parallel.etp = {layout.ep} x {layout.etp} does not divide the {stage} "
            f"GPUs of a pipeline stage (tp x cp x dp = {layout.tp} x {layout.cp} x {layout.dp}); "
            f"the product may be {_divisors(stage, 128)}"
        )
    if layout.tp > 1 and not sequence_parallel:
        rules.append(
            f"parallel.sequence_parallel = false with parallel.tp = {layout.tp}: Megatron trains "
            "experts under tensor parallel only with sequence parallel; set it to true"
        )
    return rules


def _gpu_rules(recipe: Recipe, layout: Layout) -> list[str]:
    gpus, copy = recipe.cluster.gpus, layout.model_gpus
    cut = f"tp x pp x cp = {layout.tp} x {layout.pp} x {layout.cp} = {copy}"
    rules = []
    if layout.dp < 1 or layout.train_gpus < copy:
        rules.append(
            f"one copy of the model takes {cut} GPUs and training has {max(0, layout.train_gpus)}; "
            f"raise cluster.nodes (now {recipe.cluster.nodes} x {recipe.cluster.gpus_per_node} "
            "GPUs) or cut less"
        )
    elif copy * layout.dp != layout.train_gpus:
        stated = f" x dp = {layout.dp}" if recipe.parallel.dp is not None else ""
        rules.append(
            f"{cut}{stated} does not use the {layout.train_gpus} GPUs of training; tp x pp x cp "
            f"may be {_divisors(layout.train_gpus, 256)}, and parallel.dp is best left out"
        )
    node = recipe.cluster.gpus_per_node
    if layout.train_gpus > node and layout.train_gpus % node:
        rules.append(
            f"{layout.train_gpus} GPUs train, which is no multiple of cluster.gpus_per_node = "
            f"{node}; change parallel.dp or cluster.rollout_gpus"
        )
    settled = recipe.parallel.dp is not None or recipe.cluster.rollout_gpus is not None
    if not layout.colocate and not settled:
        rules.append(
            "training and rollout do not share GPUs (cluster.colocate = false); write "
            "cluster.rollout_gpus or parallel.dp"
        )
    elif not layout.colocate and layout.train_gpus + layout.rollout_gpus > gpus:
        rules.append(
            f"training takes {layout.train_gpus} and rollout {layout.rollout_gpus} GPUs, the "
            f"cluster has {gpus}; lower cluster.rollout_gpus or parallel.dp, or set "
            "cluster.colocate = true"
        )
    return rules


def _batch_rules(recipe: Recipe, layout: Layout) -> list[str]:
    rollout = recipe.rollout
    responses = rollout.prompts * rollout.group_size // rollout.updates
    stated = (
        f"prompts x group_size / updates = {rollout.prompts} x {rollout.group_size} / "
        f"{rollout.updates} = {responses} responses of an update"
    )
    if layout.dp > responses:
        return [f"{stated} are fewer than the {layout.dp} data parallel ranks; raise parallel.cp"]
    if recipe.slime.version == "v0.2.4" and layout.dp and responses % layout.dp:
        return [f"{stated} are no multiple of the {layout.dp} data parallel ranks (slime v0.2.4)"]
    return []


def _engine_size_rules(recipe: Recipe, layout: Layout) -> list[str]:
    gpus, node, rollout = recipe.engine.gpus, recipe.cluster.gpus_per_node, layout.rollout_gpus
    rules = []
    if rollout < 1:
        rules.append(
            f"training takes {layout.train_gpus} of {recipe.cluster.gpus} GPUs and none is left "
            "for rollout; lower parallel.dp or raise cluster.nodes"
        )
    elif rollout % gpus:
        rules.append(
            f"engine.gpus = {gpus} does not divide the {rollout} GPUs of rollout; engine.gpus may "
            f"be {_divisors(rollout, 64)}"
        )
    if node % gpus and gpus % node:
        rules.append(
            f"engine.gpus = {gpus} neither divides the {node} GPUs of a node nor is a multiple of "
            f"them; take one of {_divisors(node, node)}, or {2 * node}"
        )
    return rules


def _engine_head_rules(recipe: Recipe, shape: ModelShape, layout: Layout) -> list[str]:
    engine = recipe.engine
    rules = _not_divided("GPUs of an engine", engine.gpus, "engine.ep", engine.ep)
    if engine.ep > 1 and shape.moe is None:
        rules = [f"engine.ep = {engine.ep}, but the model has no experts; leave it at 1"]
    if engine.gpus % engine.dp_attention:
        groups = engine.dp_attention
        return rules + _not_divided("GPUs of an engine", engine.gpus, "engine.dp_attention", groups)
    cut, heads, kv = layout.engine_attention_tp, shape.num_heads, shape.num_kv_heads
    what = f"engine.gpus / engine.dp_attention = {engine.gpus} / {engine.dp_attention} = {cut}"
    if heads % cut:
        rules.append(f"{what} does not divide the {heads} attention heads; {_engine_sizes(heads)}")
    elif kv % cut and cut % kv:
        rules.append(
            f"{what} neither divides the {kv} key-value heads nor is a multiple of them; "
            f"{_engine_sizes(kv)}"
        )
    return rules


def _engine_sizes(heads: int) -> str:
    return f"take one of {_divisors(heads, 16)} GPUs an attention group"
