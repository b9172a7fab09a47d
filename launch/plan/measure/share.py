"""One GPU's share of a pipeline stage, as sizes.

One design choice: everything a measurement depends on is in one flat record of plain numbers, so
that it travels to the measuring process as JSON and a test can write one down.
"""

from __future__ import annotations

from dataclasses import dataclass

from slime_ext.errors import ExplainedError


class MeasureError(ExplainedError):
    """A share that cannot be built or measured here."""


@dataclass(frozen=True, slots=True)
class Share:
    """Sizes on one GPU; all lengths are tokens of one micro-batch."""

    layers: int
    """Of this stage."""
    hidden: int
    heads: int
    """Query heads, and `kv_heads` key-value heads, of this tensor-parallel rank."""
    kv_heads: int
    head_dim: int
    ffn: int
    """Width of the dense feed-forward network on this rank; 0 in a mixture of experts."""
    vocab: int
    """Rows of the padded vocabulary on this rank."""
    tokens: int
    """Of this context-parallel rank."""
    tp: int
    cp: int
    shards: int
    """Ranks that share the optimizer states of dense weights; `expert_shards` of experts."""
    has_embedding: bool
    has_head: bool
    tied: bool
    """One matrix is embedding and head, where the stage has both."""
    qk_norm: bool
    qkv_bias: bool
    sequence_parallel: bool
    recompute: bool
    in_flight: int
    """Micro-batches whose checkpoints are alive at once on this stage."""
    log_prob_chunk: int
    """Rows of logits at once in the passes that are cut; `chunked`: the recipe cuts them."""
    chunked: bool
    temperature: float
    response_rows: int | None = None
    """Rows of logits that v0.2.4 looks at, and not as v0.3.1 does; None is all, as v0.3.1 does."""
    experts: int = 0
    """Experts on this rank, out of `all_experts`, `top_k` of them for a token."""
    all_experts: int = 0
    top_k: int = 0
    etp: int = 1
    """Ranks that one expert is cut into; `expert_ffn` is this rank's width."""
    expert_ffn: int = 0
    expert_shards: int = 1

    @property
    def sequence_ranks(self) -> int:
        """Ranks over which activations between layers are cut."""
        return self.tp if self.sequence_parallel else 1

    @property
    def cut_tokens(self) -> int:
        """Tokens of this rank between layers."""
        return self.tokens // self.sequence_ranks
