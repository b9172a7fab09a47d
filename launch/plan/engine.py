"""Memory of one SGLang engine: weights, key-value cache, and how many sequences it holds.

One design choice: capacity is counted in sequences of full length, alone and as groups that share
their prompt, because at 160K tokens it is the cache, not the request limit, that decides how many
responses are under way.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.plan.layout import Layout
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.count import ParameterCounts, count_parameters
from slime_ext.weights.shape import HybridShape, ModelShape

GIB = 2**30
BF16, FP32 = 2, 4


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """One engine of `gpus` GPUs; bytes unless a name says otherwise."""

    gpus: int
    engines: int
    weights_per_gpu: float
    kv_bytes_per_token: int
    """Of the model, each key-value head once."""
    kv_bytes_per_token_held: int
    """Over the GPUs that share a sequence, copies of key-value heads included."""
    state_bytes_per_sequence: float
    """Of gated-delta-net layers, whatever the length; 0 in other models."""
    sequence_bytes: float
    """One sequence of full length, as the engine holds it."""
    pool_per_gpu: float
    """What memory_fraction leaves for the cache; may be negative."""
    tokens: int
    """Tokens in the cache of one engine."""
    sequences: int
    """Sequences of full length in one engine."""
    groups: int
    """Groups in one engine whose responses are full-length and share the prompt's cache."""
    wanted: int
    """Responses of a step."""
    limit: int
    """Requests under way in one engine (`engine.concurrency`)."""

    @property
    def under_way(self) -> int:
        """Full-length responses under way in all engines, each with a prompt of its own."""
        return min(self.sequences, self.limit) * self.engines


def engine_memory(recipe: Recipe, shape: ModelShape, layout: Layout) -> EngineMemory:
    """Plan one engine at `rollout.context_tokens`; bf16 weights and cache."""
    engine, rollout = recipe.engine, recipe.rollout
    attention_tp, groups = layout.engine_attention_tp, layout.engine_attention_groups
    heads_per_gpu = max(1, shape.num_kv_heads / attention_tp)
    per_layer = 2 * shape.head_dim * BF16
    kv_per_gpu = shape.attention_layers * per_layer * heads_per_gpu
    state = _state_bytes(shape.hybrid, shape.num_layers)
    weights = _weights_per_gpu(count_parameters(shape), shape, layout)
    pool = engine.memory_fraction * recipe.cluster.gpu_memory_gib * GIB - weights
    sequence = kv_per_gpu * rollout.context_tokens + state / attention_tp
    response = min(rollout.max_response_tokens, rollout.context_tokens)
    shared = kv_per_gpu * (rollout.context_tokens - response)
    group = shared + rollout.group_size * (kv_per_gpu * response + state / attention_tp)
    return EngineMemory(
        gpus=layout.engine_gpus,
        engines=layout.engines,
        weights_per_gpu=weights,
        kv_bytes_per_token=shape.attention_layers * per_layer * shape.num_kv_heads,
        kv_bytes_per_token_held=int(kv_per_gpu * attention_tp),
        state_bytes_per_sequence=state,
        sequence_bytes=sequence * attention_tp,
        pool_per_gpu=pool,
        tokens=max(0, int(pool / kv_per_gpu)) * groups,
        sequences=max(0, int(pool / sequence)) * groups,
        groups=max(0, int(pool / group)) * groups,
        wanted=rollout.prompts * rollout.group_size,
        limit=engine.concurrency,
    )


def _weights_per_gpu(counts: ParameterCounts, shape: ModelShape, layout: Layout) -> float:
    """Feed-forward and experts are cut over all GPUs of an engine, attention and vocabulary over
    those of one attention group."""
    mlp = shape.num_layers * (counts.layer_mlp + counts.layer_experts)
    rest = counts.total - mlp
    return BF16 * (mlp / layout.engine_gpus + rest / layout.engine_attention_tp)


def _state_bytes(hybrid: HybridShape | None, num_layers: int) -> float:
    """fp32 state and bf16 convolution window of one sequence, over all gated-delta-net layers."""
    if hybrid is None:
        return 0.0
    layers = num_layers - len(hybrid.full_attention_layers)
    recurrent = hybrid.value_heads * hybrid.key_head_dim * hybrid.value_head_dim * FP32
    mixed = 2 * hybrid.key_heads * hybrid.key_head_dim + hybrid.value_heads * hybrid.value_head_dim
    return layers * (recurrent + mixed * (hybrid.conv_kernel - 1) * BF16)
