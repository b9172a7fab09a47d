"""Tokens of the largest micro-batch on one GPU.

One design choice: the longest sample rules, not `max_tokens_per_gpu`, because slime gives a sample
longer than that limit a micro-batch of its own instead of refusing it.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.plan.layout import Layout
from slime_ext.recipe.schema import Recipe

PAD_MULTIPLE = 128
"""slime's default of --data-pad-size-multiplier, times tensor parallel."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The largest micro-batch, in tokens."""

    whole: int
    """Over all context parallel ranks."""
    local: int
    """On one context parallel rank."""
    shard: int
    """Of activations between the layers on one GPU: local / tp under sequence parallel."""
    response_rows: int
    """Rows that predict response tokens, on the rank that holds most of them."""
    count: int
    """Micro-batches of one update on one data parallel rank, each with full-length samples."""


def largest_micro_batch(recipe: Recipe, layout: Layout) -> MicroBatch:
    """Tokens where every sample is `rollout.context_tokens` long and ends in a longest response."""
    rollout, cp = recipe.rollout, layout.cp
    limit = recipe.performance.max_tokens_per_gpu
    response = min(rollout.max_response_tokens, rollout.context_tokens)
    longest = 2 * cdiv(rollout.context_tokens, 2 * cp)
    multiple = PAD_MULTIPLE * layout.tp
    local = cdiv(max(longest, limit), multiple) * multiple
    samples = max(1, limit * cp // rollout.context_tokens)
    rows = samples * most_response_rows(rollout.context_tokens, response, cp)
    responses = rollout.prompts * rollout.group_size // rollout.updates
    return MicroBatch(
        whole=local * cp,
        local=local,
        shard=local // layout.tp if layout.sequence_parallel else local,
        response_rows=min(local, rows),
        count=max(1, cdiv(cdiv(responses, max(1, layout.dp)), samples)),
    )


def most_response_rows(total: int, response: int, cp: int) -> int:
    """Rows of a `response` that ends a sample of `total` tokens, on its fullest CP rank.

    Under zigzag, rank r holds pieces r and 2 cp - 1 - r of 2 cp equal pieces.
    """
    piece = cdiv(total, 2 * cp)
    first = total - response

    def rows(index: int) -> int:
        return max(0, min(total, (index + 1) * piece) - max(first, index * piece))

    return max(rows(rank) + rows(2 * cp - 1 - rank) for rank in range(cp))


def cdiv(value: int, by: int) -> int:
    """`value / by`, rounded up."""
    return -(-value // by)
