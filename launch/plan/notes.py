"""What slime's flags do not say, in the numbers of one plan.

One design choice: a note appears only where its number matters to this recipe.
"""

from __future__ import annotations

from launch.plan.engine import GIB
from launch.plan.plan import Plan
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.shape import ModelShape


def notes(recipe: Recipe, shape: ModelShape, plan: Plan) -> list[str]:
    """Sentences to print under a plan."""
    return [
        *_micro_batch(recipe, plan),
        *_log_probs(recipe, plan),
        *_engine(recipe, plan),
        *_rough(recipe, shape),
        _preemption(recipe, plan),
    ]


def _micro_batch(recipe: Recipe, plan: Plan) -> list[str]:
    limit, longest = recipe.performance.max_tokens_per_gpu, plan.batch.local
    if longest <= limit + 128 * plan.layout.tp:
        return []
    return [
        f"performance.max_tokens_per_gpu = {limit:,} is soft: a sample of {plan.context_tokens:,} "
        f"tokens is a micro-batch of its own, {longest:,} tokens on each GPU at CP "
        f"{plan.layout.cp}, and the plan counts that"
    ]


def _log_probs(recipe: Recipe, plan: Plan) -> list[str]:
    memory = plan.log_probs
    passes = memory.no_grad_passes
    said = []
    if memory.chunk is not None:
        said.append(
            f"performance.log_prob_chunk = {memory.chunk:,} saves in passes without gradients only "
            f"({memory.no_grad_whole / GIB:.1f} -> {memory.no_grad_chunked / GIB:.1f} GiB, though "
            f"making the fp32 logits takes {memory.conversion / GIB:.1f} in any case; this recipe "
            f"has {passes or 'none'} such passes a step); the training pass peaks at "
            f"{memory.train_chunked / GIB:.1f} GiB with it and {memory.train_whole / GIB:.1f} "
            "without"
        )
    if plan.host == "v0.2.4":
        said.append(
            f"slime v0.2.4 turns {memory.rows:,} response rows of {plan.batch.local:,} into "
            "log-probs; its training pass still writes gradients of all of them"
        )
    return said


def _engine(recipe: Recipe, plan: Plan) -> list[str]:
    engine = plan.engine
    said = []
    if engine.under_way < engine.wanted and engine.sequences <= engine.limit:
        groups = min(engine.groups * engine.engines, recipe.rollout.prompts)
        said.append(
            f"{engine.under_way} of a step's {engine.wanted} responses can be under way at full "
            f"length ({plan.context_tokens:,} tokens) if no prompt is shared; a group that shares "
            f"its prompt takes less: {groups} of {recipe.rollout.prompts} groups at once"
        )
    elif engine.under_way < engine.wanted:
        said.append(
            f"engine.concurrency = {engine.limit} lets {engine.under_way} of a step's "
            f"{engine.wanted} responses be under way; the caches hold "
            f"{engine.sequences * engine.engines} of full length"
        )
    if engine.kv_bytes_per_token_held > engine.kv_bytes_per_token:
        times = engine.kv_bytes_per_token_held / engine.kv_bytes_per_token
        said.append(
            f"{engine.gpus} GPUs hold each key-value head {times:g} times; a smaller engine.gpus, "
            "or engine.dp_attention, fits more sequences"
        )
    return said


def _rough(recipe: Recipe, shape: ModelShape) -> list[str]:
    said = []
    if recipe.performance.recompute == "none":
        said.append(
            "without recomputation the activations are a guess: fused kernels keep fewer tensors "
            "than are counted; measure before you book (longrl plan RECIPE --measure)"
        )
    if shape.moe:
        said.append("experts are taken as balanced; imbalance multiplies their working set")
    if shape.hybrid:
        said.append(
            "gated-delta-net layers run whole on every TP and CP rank under slime; "
            "not covered by parallel-check"
        )
    return said


def _preemption(recipe: Recipe, plan: Plan) -> str:
    """A run that is told in time ends its rollout, which is lost, and saves before its update."""
    time, notice = plan.duration, recipe.cluster.signal_s
    between = _stated(time.expected_loss_s)
    said = f"half of checkpoint.every = {time.save_every} steps of {time.step_s:.0f} s"
    if time.step_s > notice:
        return (
            f"a preemption loses {between} of work on average, {said}: its notice, "
            f"cluster.signal_s = {notice} s, is shorter than a step; raise it above that and one "
            "rollout is lost at most"
        )
    return (
        f"a preemption loses the rollout under way, {_stated(time.rollout_s)}: told {notice} s "
        f"before (cluster.signal_s), the run saves before its update; a crash loses {between} on "
        f"average, {said}"
    )


def _stated(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
