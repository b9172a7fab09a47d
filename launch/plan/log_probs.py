"""Logits and log-probs: the peak of the last pipeline stage.

One design choice: the two hosts are planned as what they do, which differs. v0.3.1 turns the whole
local sequence into log-probs. v0.2.4 takes the response rows only, which saves in the passes
without gradients; in the training pass its slices, clones and own entropy cost more than that.
Measured on CPU with each version's own function (fp32 copies of the local logits T x V, rows R):
v0.3.1 2.5 T; v0.2.4 max(T + 3.5 R, 2.5 T) at CP 1 and max(T + 4 R, 3.5 T) above. Making the fp32
logits from the bf16 ones takes 1.5 T for a moment, which is more than log-probs in chunks take.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.plan.layout import Layout
from launch.plan.tokens import MicroBatch
from slime_ext.recipe.schema import Recipe
from slime_ext.weights.count import padded_vocab_size
from slime_ext.weights.shape import ModelShape

USUAL_CHUNK = 1024
"""Rows of a chunk where the recipe cuts nothing, so that both ways are compared."""


@dataclass(frozen=True, slots=True)
class LogProbMemory:
    """Bytes on one GPU of the last stage; each peak includes the logits themselves."""

    rows: int
    """Rows of logits turned into log-probs."""
    logits_bf16: float
    logits_fp32: float
    train_whole: float
    """Training pass, all rows at once."""
    train_chunked: float
    no_grad_whole: float
    no_grad_chunked: float
    """The log-probs alone; the pass peaks at `conversion` where that is more."""
    chunk: int | None
    """`performance.log_prob_chunk`."""
    no_grad_passes: int
    """Passes of a step without gradients: log-probs of the sampling policy, of the reference."""

    @property
    def train(self) -> float:
        return self.train_whole if self.chunk is None else self.train_chunked

    @property
    def conversion(self) -> float:
        """bf16 and fp32 logits at once, while one is made from the other."""
        return self.logits_bf16 + self.logits_fp32


def log_prob_memory(
    recipe: Recipe, shape: ModelShape, layout: Layout, batch: MicroBatch
) -> LogProbMemory:
    """Peaks by host version; upper bounds, since they assume that the caller still holds the fp32
    logits and that the bf16 gradient meets the softmax."""
    chunk = recipe.performance.log_prob_chunk
    row = 4 * padded_vocab_size(shape, layout.tp) / layout.tp
    copy = batch.local * row
    # Another temperature than 1 makes one more copy of the logits.
    scaled = copy if recipe.rollout.temperature != 1.0 else 0.0
    older = recipe.slime.version == "v0.2.4"
    rows = batch.response_rows if older else batch.local
    piece = min(chunk or USUAL_CHUNK, rows) * row
    if older:
        joined = 1 if layout.cp > 1 else 0
        kept = rows * row
        train = max(copy + (3 + joined) * kept, (2.5 + joined) * copy)
        whole = train if joined else max(train, copy + 3.5 * kept)
        no_grad = copy + (1 + joined) * kept
        no_grad_chunked = copy + joined * kept + piece
    else:
        train, whole = 3.5 * copy, 2.5 * copy
        no_grad, no_grad_chunked = 2 * copy, copy + piece
    return LogProbMemory(
        rows=rows,
        logits_bf16=copy / 2,
        logits_fp32=copy,
        train_whole=whole + scaled,
        train_chunked=train + scaled,
        no_grad_whole=no_grad + scaled,
        no_grad_chunked=min(no_grad, no_grad_chunked) + scaled,
        chunk=chunk,
        no_grad_passes=no_grad_passes(recipe),
    )


def no_grad_passes(recipe: Recipe) -> int:
    """Forward passes of a step without gradients. v0.3.1 takes the log-probs of the sampling policy
    from the training pass where a step has one update; v0.2.4 always computes them."""
    reference = int(recipe.loss.kl_coef > 0)
    policy = int(recipe.slime.version == "v0.2.4" or recipe.rollout.updates > 1)
    return reference + policy
