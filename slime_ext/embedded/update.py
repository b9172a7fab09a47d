"""One optimiser update as flat token tensors and micro-batches of trees.

One design choice: everything per token is laid out once, samples in order, and a micro-batch is a
set of sample indices into it, so nothing depends on how the update was cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from slime_ext.embedded.log_probs import chunked_log_probs
from slime_ext.embedded.loss import TokenInputs, token_weights
from slime_ext.embedded.model import PolicyModel
from slime_ext.embedded.samples import (
    MicroBatch,
    TrainSample,
    check_samples,
    has_gradient,
    micro_batches,
    trees,
)
from slime_ext.embedded.tree import pack
from slime_ext.recipe.schema import Recipe


@dataclass(frozen=True, slots=True)
class Update:
    """Samples of one update; per-token tensors are [all response tokens], samples in order.

    `batches` leaves out trees without a gradient; `weights` counts their tokens all the same.
    """

    samples: Sequence[TrainSample]
    batches: list[MicroBatch]
    starts: list[int]
    weights: Tensor
    advantages: Tensor
    rollout_log_probs: Tensor

    def token_index(self, batch: MicroBatch) -> Tensor:
        """Where the tokens of a micro-batch lie, in the order in which the model yields them."""
        members = (index for tree in batch for index in tree.members)
        return torch.cat([torch.arange(self.starts[i], self.starts[i + 1]) for i in members])

    def inputs(
        self, index: Tensor, old_log_probs: Tensor, reference_log_probs: Tensor | None
    ) -> TokenInputs:
        """The loss inputs of the tokens at `index`."""
        return TokenInputs(
            old_log_probs=old_log_probs,
            rollout_log_probs=self.rollout_log_probs[index],
            advantages=self.advantages[index],
            weights=self.weights[index],
            reference_log_probs=reference_log_probs,
        )


def plan_update(samples: Sequence[TrainSample], recipe: Recipe) -> Update:
    """Lay out one update. Raises ValueError for no samples, or one that does not fit together."""
    if not samples:
        raise ValueError("an update holds no samples; give every update at least one")
    check_samples(samples)
    with_kl = recipe.loss.kl_coef > 0
    active = [tree for tree in trees(samples) if has_gradient(tree, samples, with_kl)]
    lengths = torch.tensor([len(sample.response_ids) for sample in samples])
    weights = token_weights(
        torch.tensor([flag for sample in samples for flag in sample.loss_mask]),
        torch.tensor([sample.rollout for sample in samples]).repeat_interleave(lengths),
        recipe.loss.normalise,
        recipe.rollout.max_response_tokens,
    )
    return Update(
        samples=samples,
        batches=micro_batches(active, samples, recipe.embedded.micro_batch_tokens),
        starts=[0, *accumulate(lengths.tolist())],
        weights=weights,
        advantages=torch.tensor([s.advantage for s in samples]).repeat_interleave(lengths),
        rollout_log_probs=torch.tensor([x for s in samples for x in s.rollout_log_probs]),
    )


def batch_log_probs(
    model: PolicyModel, batch: MicroBatch, temperature: float, chunk: int
) -> tuple[Tensor, Tensor]:
    """Log-probabilities and entropies [N] of a micro-batch's response tokens, trees in order."""
    packed = pack([tree.group for tree in batch])
    hidden = model.hidden_states(packed.ids, packed.positions, packed.layout)
    chosen = hidden.flatten(0, 1).index_select(0, packed.hidden_index)
    return chunked_log_probs(chosen, model.head_weight(), packed.targets, temperature, chunk)
